"""Small files of every layout and encoding of 2.1 and 2.2, each of one column.

Run as a program (``python -m tests.faults.files_2_1 VERSION FOLDER``) it lets the oracle write them; its
threads do not survive a fork, so it has a process of its own.  `write_ours` writes what our writer can.
"""

from __future__ import annotations

import random
import string
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

ROWS: Final = 1500
"""Some chunks of small values, with a last one that is not whole."""
FEW: Final = 200
FULL_ZIP: Final = {"structural-encoding": "fullzip"}

_IDS = np.arange(ROWS)
_RANDOM = random.Random(21)
_NUMBERS = np.random.default_rng(21)


def _holes(values: Any) -> list[Any]:
    return [None if row % 5 == 2 else value for row, value in enumerate(values)]


def _text(rows: int = ROWS) -> list[str]:
    return [f"text {i} and {i * 7919 % 997}" for i in range(rows)]


def _noise(rows: int, size: int) -> list[str]:
    return ["".join(_RANDOM.choices(string.printable, k=size)) for _ in range(rows)]


_LISTS = _holes([list(range(i % 4)) for i in _IDS])
_PAIR = pa.struct([("a", pa.int32()), ("b", pa.float64())])
_MIXED = pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.large_binary())])
_NESTED = _holes([{"a": int(i), "b": [str(i)] * (i % 3)} for i in _IDS])
_DEEP = [[[None, [i, None], []][: i % 4], None][: i % 3] for i in range(ROWS)]
_WAVES = np.sin(_IDS / 100)
_POINT = pa.struct([("x", pa.int32()), ("y", pa.string())])
_ROW = pa.struct([("w", pa.string()), ("v", pa.list_(pa.int16(), 2)), ("k", pa.int64())])


def _point(row: int) -> Any:
    return None if row % 4 == 1 else {"x": row, "y": None if row % 3 else f"y{row}"}


def _inner(row: int) -> Any:
    points = None if row % 6 == 5 else [(f"k{key}", _point(row + key)) for key in range(row % 3)]
    return None if row % 7 == 2 else {"m": points, "s": _point(row)}


Column = tuple[Any, dict[str, str], pa.DataType | None]

COLUMNS: Final[dict[str, Column]] = {
    # mini-block, numbers
    "flat": (_NUMBERS.random(ROWS), {"compression": "none"}, None),
    "inline": (_IDS, {}, None),
    "inline-nulls": (_holes(_IDS.tolist()), {}, pa.int64()),
    "bytes": (_NUMBERS.integers(0, 9, ROWS), {}, pa.uint8()),
    "bools": (_holes([i % 3 == 0 for i in _IDS]), {}, None),
    "rle": (_IDS // 40, {"rle-threshold": "1.0"}, pa.int32()),
    "rle-nulls": (_holes((_IDS // 70 * 2**40).tolist()), {"rle-threshold": "1.0"}, pa.int64()),
    "bss-zstd": (_WAVES, {"compression": "zstd", "bss": "on"}, None),
    "bss-lz4": (_WAVES, {"compression": "lz4", "bss": "on"}, pa.float32()),
    "decimals": ((_IDS % 3).tolist(), {}, pa.decimal128(20, 2)),
    "times": (_holes((_IDS * 1000).tolist()), {}, pa.timestamp("us", "UTC")),
    # mini-block, byte strings
    "plain-text": (_holes(_text()), {"compression": "none"}, None),
    "fsst": (_text(), {"compression": "fsst"}, None),
    "fsst-large": (_holes(_text()), {"compression": "fsst"}, pa.large_string()),
    "zstd-text": (_text(), {"compression": "zstd"}, None),
    "lz4-text": (_text(), {"compression": "lz4"}, None),
    "words": (_holes([f"w{i % 7}" for i in _IDS]), {}, None),
    "arrow-words": ([f"w{i % 7}" for i in _IDS], {}, pa.dictionary(pa.int16(), pa.string())),
    "few-numbers": ((_IDS % 5 * 2**50 + 1).tolist(), {"dict-size-ratio": "0.9"}, pa.int64()),
    "fixed-binary": ([b"%08d" % i for i in _IDS], {}, pa.binary(8)),
    # mini-block, nested
    "vectors": ([[i, i + 1, 3] for i in _IDS], {}, pa.list_(pa.int16(), 3)),
    "holey-vectors": (_holes([[i, None] for i in _IDS]), {}, pa.list_(pa.int32(), 2)),
    "matrices": (
        [[[i, 1], [None, 2]] for i in range(FEW)],
        {},
        pa.list_(pa.list_(pa.int16(), 2), 2),
    ),
    "lists": (_LISTS, {}, pa.list_(pa.int32())),
    "text-lists": ([[str(i)] * (i % 3) for i in _IDS], {}, pa.large_list(pa.string())),
    "structs": (_NESTED, {}, None),
    "deep": (_DEEP, {}, pa.list_(pa.list_(pa.list_(pa.int32())))),
    "packed": ([{"a": int(i), "b": 1.5} for i in _IDS], {"packed": "true"}, _PAIR),
    # full-zip
    "zip-text": (_holes(_text()), FULL_ZIP, None),
    "zip-zstd": (_text(), {**FULL_ZIP, "compression": "zstd"}, None),
    "zip-noise": (_noise(FEW, 90), {**FULL_ZIP, "compression": "zstd"}, None),
    "zip-bools": (_holes([i % 3 == 0 for i in _IDS]), FULL_ZIP, None),
    "zip-lz4": (_text(FEW), {**FULL_ZIP, "compression": "lz4"}, None),
    "zip-fsst": (_text(), {**FULL_ZIP, "compression": "fsst"}, None),
    "zip-lists": (_LISTS, FULL_ZIP, pa.list_(pa.int32())),
    "zip-text-lists": ([[str(i)] * (i % 3) for i in _IDS], FULL_ZIP, pa.list_(pa.string())),
    "zip-vectors": (_holes([[i, None, 3] for i in _IDS]), FULL_ZIP, pa.list_(pa.int32(), 3)),
    "zip-numbers": (_holes(_IDS.tolist()), FULL_ZIP, pa.int32()),
    "zip-deep": (_DEEP, FULL_ZIP, pa.list_(pa.list_(pa.list_(pa.int32())))),
    # nothing but levels, and elsewhere
    "nulls": ([None] * ROWS, {}, pa.int32()),
    "null-lists": ([None if i % 2 else [] for i in _IDS], {}, pa.list_(pa.int8())),
    "null-type": ([None] * ROWS, {}, pa.null()),
    "same": ([9] * ROWS, {}, pa.int64()),
    "same-text": (_holes(["tail"] * ROWS), {}, None),
    "same-lists": (_holes([[7] * (i % 3) for i in _IDS]), {}, pa.list_(pa.int32())),
    "blobs": (
        _holes([b"%d" % i * (i % 9) for i in _IDS[:FEW]]),
        {"blob": "true"},
        pa.large_binary(),
    ),
}

SINCE_2_2: Final[dict[str, Column]] = {
    "same-binary": ([b"x" * 40] * ROWS, {}, pa.binary(40)),
    "same-bits": ([True] * ROWS, {}, None),
    "same-few": (_holes(["tail"] * 40), {}, pa.large_string()),
    "few-floats": ((_WAVES[_IDS % 9]).tolist(), {}, pa.float64()),
    "few-small-floats": ((_WAVES[_IDS % 9]).tolist(), {}, pa.float32()),
    "many-again": ((_NUMBERS.integers(0, 2**50, 1100)[_IDS % 1100]).tolist(), {}, pa.int64()),
    "few-binaries": ([b"%032d" % (i % 3) for i in _IDS], {}, pa.binary(32)),
    "few-text-zstd": (
        _holes([f"value number {i % 200}" for i in _IDS]),
        {"dict-values-compression": "zstd"},
        None,
    ),
    "null-runs": ([None if i // 200 % 2 else i / 7 for i in _IDS], {}, pa.float64()),
    "lists-in-runs": (
        [None if i // 200 % 2 else list(range(i % 150)) for i in range(FEW)],
        {},
        pa.list_(pa.int64()),
    ),
    "lists-of-lists-in-runs": (
        [[list(range(i * 7, i * 7 + 60 + i % 40))] * (1 + i % 3) for i in range(FEW)],
        {},
        pa.list_(pa.list_(pa.int64())),
    ),
    "mixed-rows": (
        _holes([{"a": i, "b": f"s{i}" * (i % 3), "c": b"x" * (i % 50)} for i in range(FEW)]),
        {"packed": "true"},
        _MIXED,
    ),
    "maps": (
        _holes([[(f"k{j}", j) for j in range(i % 3)] for i in _IDS]),
        {},
        pa.map_(pa.string(), pa.int32()),
    ),
    "struct-vectors": (
        _holes([[{"a": i, "b": str(i)}, None] for i in range(FEW)]),
        {},
        pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]), 2),
    ),
    # NULL structs at every depth, also in lists and maps
    "null-structs": (
        [_inner(i) for i in range(ROWS)],
        {},
        pa.struct([("m", pa.map_(pa.string(), _POINT)), ("s", _POINT)]),
    ),
    "null-structs-in-lists": (
        _holes([[_inner(i + j) for j in range(i % 3)] for i in range(FEW)]),
        {},
        pa.list_(pa.struct([("m", pa.map_(pa.string(), _POINT)), ("s", _POINT)])),
    ),
    "only-null-structs": ([None, {"s": None}] * 100, {}, pa.struct([("s", _POINT)])),
    "maps-of-lists": (
        _holes([[(j, [i, None][: i % 3]) for j in range(i % 4)] for i in range(FEW)]),
        {},
        pa.map_(pa.int8(), pa.list_(pa.int64())),
    ),
    "maps-in-maps": (
        _holes([[(j, [(f"k{i}", 1.5)] * (i % 2)) for j in range(i % 3)] for i in range(FEW)]),
        {},
        pa.map_(pa.int8(), pa.map_(pa.string(), pa.float64())),
    ),
    "empty-maps": ([None, []] * FEW, {}, pa.map_(pa.string(), pa.int32())),
    "struct-vectors-in-structs": (
        _holes([{"v": [{"x": i, "y": "a"}, None, {"x": 1}], "n": i} for i in range(FEW)]),
        {},
        pa.struct([("v", pa.list_(_POINT, 3)), ("n", pa.int16())]),
    ),
    "rows-with-vectors": (
        [{"w": "w" * (i % 20), "v": [i, 1], "k": i} for i in range(FEW)],
        {"packed": "true"},
        _ROW,
    ),
    "rows-zstd": (
        _holes([{"w": f"row number {i} " * 9, "v": [i, 1], "k": i} for i in range(FEW)]),
        {"packed": "true", "compression": "zstd"},
        _ROW,
    ),
    "level-runs": (
        [None if i // 300 % 2 else [None] * (i % 40 // 39 * 50) for i in range(ROWS)],
        {},
        pa.list_(pa.int16()),
    ),
    "same-in-runs": ([None if i // 200 % 2 else 7 for i in range(ROWS)], {}, pa.int32()),
    "same-vectors": ([[1.5, 2.5]] * ROWS, {}, pa.list_(pa.float64(), 2)),
    "same-in-maps": ([[("k", 1)]] * FEW, {}, pa.map_(pa.string(), pa.int64())),
    "wide-dictionary": ([f"item {i % 300} {i % 300}" for i in _IDS], {}, pa.large_string()),
    "indices-of-64-bits": (
        [f"w{i % 7}" for i in _IDS],
        {},
        pa.dictionary(pa.int64(), pa.string()),
    ),
    "rows-in-lists": (
        _holes([[{"w": "w" * i, "v": [i, j], "k": j} for j in range(i % 3)] for i in range(FEW)]),
        {},
        pa.list_(pa.field("item", _ROW, metadata={"lance-encoding:packed": "true"})),
    ),
    "large-chunks": (
        [f"{i % 10}" * 2000 + str(i) for i in range(90)],
        {"structural-encoding": "miniblock"},
        None,
    ),
    "large-vectors": (
        [[i / 7] * 1000 for i in range(40)],
        {"structural-encoding": "miniblock"},
        pa.list_(pa.float32(), 1000),
    ),
}


def columns_of(version: str) -> dict[str, Column]:
    """Return the columns that the oracle can write in a file of this version."""
    return COLUMNS | SINCE_2_2 if version == "2.2" else COLUMNS


def table_of(column: Column) -> pa.Table:
    """Return a table of one column, whose field has the metadata that forces the encoding."""
    values, metadata, data_type = column
    array = pa.array(values, data_type)
    prefixed = {f"lance-encoding:{key}": value for key, value in metadata.items()}
    field = pa.field("c", array.type, metadata=prefixed or None)
    return pa.table([array], schema=pa.schema([field]))


def write_all(
    version: str,
    folder: Path,
    open_writer: Callable[[str, pa.Schema, str], Any],
) -> list[str]:
    """Write the files and return the names of those that a writer refuses."""
    refused = []
    for name, column in columns_of(version).items():
        table = table_of(column)
        path = folder / f"{name}-{version}.lance"
        try:
            with open_writer(str(path), table.schema, version) as writer:
                writer.write_batch(table)
        except NotImplementedError:
            refused.append(name)
    return refused


def write_ours(version: str, folder: Path) -> list[str]:
    """Let our writer write the files; return the names of those that it refuses."""
    from pennon.file import LanceFileWriter

    return write_all(version, folder, lambda p, s, v: LanceFileWriter(p, s, version=v))


def main(version: str, folder: Path) -> None:
    """Let the oracle write the files."""
    from lance.file import LanceFileWriter

    refused = write_all(version, folder, lambda p, s, v: LanceFileWriter(p, s, version=v))
    if refused:
        sys.exit(f"the oracle refuses {refused}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
