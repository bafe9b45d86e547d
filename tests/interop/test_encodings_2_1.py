"""Files of pylance with each encoding and layout of 2.1 and 2.2, read by Pennon.

Where the oracle would not choose it, field metadata forces it.  Each file must really hold what it is
here for, and is read whole, by slices at the borders of chunks, and by scattered rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.rows import Rows
from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.layouts import BlobPage, ConstantPage, FullZip, MiniBlock
from pennon.file.container.file import DataFile
from pennon.file.open import open_container_file
from pennon.io import open_store
from pennon.testing import CountingStore
from tests.interop.equality import difference
from tests.interop.layouts import classes_in
from tests.interop.oracle import Oracle

CHUNK = 1024
ROWS = 2 * CHUNK + 1
SIZES = [1, CHUNK - 1, CHUNK, CHUNK + 1, ROWS]
FULL_ZIP = {"structural-encoding": "fullzip"}


@dataclass(frozen=True)
class Forced:
    """Values of ``rows`` rows, the metadata of their field, and the classes that must appear."""

    make: Callable[[int], pa.Array]
    metadata: dict[str, str]
    classes: set[type]
    versions: tuple[str, ...] = ("2.1", "2.2")
    least_rows: int = 1


def _numbers(rows: int) -> pa.Array:
    return pa.array(np.arange(rows) * 3 % 5000 + 7)


def _nulls(array: pa.Array) -> pa.Array:
    keep = np.arange(len(array)) % 7 != 3
    return pa.compute.if_else(pa.array(keep), array, pa.scalar(None, array.type))


def _waves(rows: int) -> pa.Array:
    return pa.array(np.sin(np.arange(rows) / 100))


def _text(rows: int) -> pa.Array:
    return pa.array([f"some text, number {i} and {i * 7919 % 100_003}" for i in range(rows)])


def _runs(rows: int) -> pa.Array:
    return pa.array(np.arange(rows) // 50 * 1_000_003 % 65_521 - 30_000, pa.int32())


def _long(rows: int) -> pa.Array:
    rng = np.random.default_rng(5)
    letters = rng.integers(97, 105, (rows, 300), np.uint8)
    return pa.array([row.tobytes().decode() for row in letters])


def _huge(rows: int) -> pa.Array:
    rng = np.random.default_rng(6)
    return pa.array([rng.bytes(33_000) if i % 3 else b"z" * 40_000 for i in range(rows % 97)])


def _vectors(rows: int) -> pa.Array:
    items = pa.array(np.arange(rows * 3, dtype=np.float32))
    return pa.FixedSizeListArray.from_arrays(items, 3)


def _holey(rows: int) -> pa.Array:
    lists = [None if i % 5 == 2 else [i, None, i + 1] for i in range(rows)]
    return pa.array(lists, pa.list_(pa.int32(), 3))


def _lists(rows: int) -> pa.Array:
    lists = [None if i % 9 == 4 else list(range(i, i + i % 4)) for i in range(rows)]
    return pa.array(lists, pa.list_(pa.int32()))


def _lists_of_text(rows: int) -> pa.Array:
    lists = [None if i % 9 == 4 else [f"t{i}", None, ""][: i % 4] for i in range(rows)]
    return pa.array(lists, pa.large_list(pa.string()))


def _rows(rows: int) -> pa.Array:
    t = pa.struct([("a", pa.int32()), ("b", pa.float64())])
    return pa.array([{"a": i, "b": i / 2} for i in range(rows)], t)


def _mixed_rows(rows: int) -> pa.Array:
    t = pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.large_binary())])
    return pa.array(
        [
            None if i % 11 == 5 else {"a": i, "b": f"s{i}" * (i % 3), "c": b"x" * (i % 50)}
            for i in range(rows)
        ],
        t,
    )


def _blobs(rows: int) -> pa.Array:
    values = [None if i % 5 == 1 else b"" if i % 5 == 2 else b"%d" % i * 9 for i in range(rows)]
    return pa.array(values, pa.large_binary())


FORCED = {
    "in-line": Forced(_numbers, {}, {MiniBlock, e.InlineBitpacking}, least_rows=CHUNK - 1),
    "out of line": Forced(
        lambda n: _nulls(_numbers(n)), {}, {e.OutOfLineBitpacking}, least_rows=CHUNK + 1
    ),
    "flat": Forced(
        _numbers, {"compression": "none", "bss": "off"}, {MiniBlock, e.Flat}, least_rows=2
    ),
    "runs": Forced(_runs, {"rle-threshold": "0.9"}, {e.Rle}, ("2.1",), CHUNK - 1),
    "zstd": Forced(_waves, {"compression": "zstd", "bss": "off"}, {e.General}, least_rows=CHUNK),
    "split lz4": Forced(
        _waves,
        {"compression": "lz4", "bss": "on"},
        {e.General, e.ByteStreamSplit},
        least_rows=CHUNK,
    ),
    "text": Forced(_text, {"compression": "none"}, {MiniBlock, e.Variable}, least_rows=2),
    "text, FSST": Forced(_text, {"compression": "fsst"}, {e.Fsst}, least_rows=CHUNK),
    "text, zstd": Forced(_text, {"compression": "zstd"}, {e.General, e.Variable}, least_rows=CHUNK),
    "dictionary": Forced(
        lambda n: pa.array([f"word {i % 9}" for i in range(n)]),
        {},
        {MiniBlock, e.Variable},
        least_rows=CHUNK,
    ),
    "dictionary array": Forced(
        lambda n: _nulls(pa.array([f"w{i % 9}" for i in range(n)])).dictionary_encode(),
        {},
        {MiniBlock},
        least_rows=CHUNK,
    ),
    "long text": Forced(_long, {}, {FullZip, e.Fsst}, least_rows=CHUNK),
    "huge values": Forced(_huge, {}, {FullZip, e.General}, least_rows=CHUNK - 1),
    "full-zip numbers": Forced(_numbers, FULL_ZIP, {FullZip, e.Flat}, ("2.1",)),
    "full-zip bits": Forced(
        lambda n: _nulls(pa.array(np.arange(n) % 3 == 0)), FULL_ZIP, {FullZip}, ("2.1",), CHUNK
    ),
    "full-zip text": Forced(
        lambda n: _nulls(_text(n)),
        FULL_ZIP | {"compression": "none"},
        {FullZip, e.Variable},
        least_rows=2,
    ),
    "full-zip zstd": Forced(
        _text, FULL_ZIP | {"compression": "zstd"}, {FullZip, e.General}, least_rows=CHUNK
    ),
    "full-zip lists": Forced(_lists, FULL_ZIP, {FullZip, e.Flat}, ("2.1",), CHUNK),
    "full-zip lists of text": Forced(
        _lists_of_text, FULL_ZIP, {FullZip}, ("2.1",), least_rows=CHUNK
    ),
    "full-zip holes": Forced(_holey, FULL_ZIP, {FullZip, e.FixedSizeList}, ("2.1",)),
    "vectors": Forced(_vectors, {}, {MiniBlock, e.FixedSizeList}),
    "holes": Forced(_holey, {}, {MiniBlock, e.FixedSizeList}),
    "lists": Forced(_lists, {}, {MiniBlock, e.OutOfLineBitpacking}, least_rows=CHUNK - 1),
    "packed rows": Forced(_rows, {"packed": "true"}, {MiniBlock, e.PackedStruct}),
    "rows of any width": Forced(
        _mixed_rows, {"packed": "true"}, {FullZip, e.VariablePackedStruct}, ("2.2",), 2
    ),
    "all NULL": Forced(lambda n: pa.nulls(n, pa.int16()), {}, {ConstantPage}),
    "nothing but lists": Forced(
        lambda n: pa.array([None if i % 2 else [] for i in range(n)], pa.list_(pa.int8())),
        {},
        {ConstantPage},
        least_rows=2,
    ),
    "one number": Forced(lambda n: pa.array([7] * n), {}, {ConstantPage}, ("2.2",)),
    "one text": Forced(
        lambda n: _nulls(pa.array(["tail"] * n)), {}, {ConstantPage}, ("2.2",), CHUNK
    ),
    "one wide value": Forced(
        lambda n: pa.array([b"x" * 40] * n, pa.binary(40)), {}, {ConstantPage}, ("2.2",)
    ),
    "blobs": Forced(_blobs, {"blob": "true"}, {BlobPage, e.PackedStruct}, least_rows=5),
}


@pytest.mark.parametrize("name", FORCED)
def test_every_encoding_of_pylance_at_2_1_is_read(
    newest: Oracle, name: str, tmp_path: Path
) -> None:
    case = FORCED[name]
    store = CountingStore(open_store(tmp_path))
    for version in case.versions:
        for rows in SIZES:
            array = case.make(rows)
            if rows < case.least_rows or not len(array):
                continue
            table = pa.table([array], schema=pa.schema([_field(case, array)]))
            path = tmp_path / "x.lance"
            newest.call("write_file", path=str(path), table=table, version=version)
            file = open_container_file(store.open(path.name))
            assert case.classes <= classes_in(file), (name, version, rows)
            _check_reads(store, file, table)
            path.unlink()


def _field(case: Forced, array: pa.Array) -> pa.Field:
    metadata = {f"lance-encoding:{key}": value for key, value in case.metadata.items()}
    return pa.field("c", array.type, metadata=metadata or None)


def _check_reads(store: CountingStore, file: DataFile, table: pa.Table) -> None:
    """Read all, slices and scattered rows, in two rounds at most (blobs take one more)."""
    most = 3 if "lance-encoding:blob" in str(table.schema.field(0).metadata) else 2
    rows = table.num_rows
    borders = sorted({0, 1, rows // 2, CHUNK - 1, CHUNK, CHUNK + 1, rows - 1, rows})
    inside = [border for border in borders if 0 <= border <= rows]
    picks = [Rows.between(start, end) for start in inside for end in inside if start < end]
    scattered = np.unique(np.random.default_rng(rows).integers(0, rows, 20))
    for wanted in [*picks, Rows.at(scattered)]:
        store.reset()
        (chunks,) = file.read_rows(file.schema.fields, file.column_of, wanted)
        assert store.counts.rounds <= most
        for chunk in chunks:
            chunk.validate(full=True)
        got = pa.table({"c": pa.chunked_array(chunks, table.schema.field(0).type)})
        source = table.take(pa.array(wanted.indices()))
        assert difference(got, source) is None, (wanted.starts, wanted.ends)
