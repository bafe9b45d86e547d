"""The contract of file versions 2.1 and 2.2: each encoding, with each type that may have it, at each size.

One file holds a column for each type.  The oracle writes it and we read it; we write it and both read
it: whole, by slices at the borders of chunks, and by scattered rows.  Then some bytes are damaged: a
typed error, or rows that are valid.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.rows import Rows
from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.layouts import ConstantPage, FullZip, MiniBlock
from pennon.errors import LanceError
from pennon.file import LanceFileReader
from pennon.file.container.file import DataFile
from tests.interop.equality import difference
from tests.interop.layouts import classes_in, open_file
from tests.interop.oracle import Oracle
from tests.interop.random_arrays import Rng, random_array
from tests.interop.random_types import FIXED, FLOATS, INTEGERS, TEXTS, TIMES
from tests.interop.test_write_2_1 import KEY, write

CHUNK = 1024
SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 4 * CHUNK + 3]
MUTANTS = 20
FULL_ZIP = {"structural-encoding": "fullzip"}

Make = Callable[[Rng, pa.DataType, int], pa.Array]


@dataclass(frozen=True)
class Encoded:
    """Types, how to make their values, the metadata that forces the encoding, and what must appear."""

    types: list[pa.DataType]
    make: Make
    metadata: dict[str, str]
    theirs: set[type]
    """The layouts and encodings that the oracle's files must have with more rows than a chunk."""
    ours: set[type]


def _any(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    return random_array(rng, t, rows, "none")


def _holes(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    return random_array(rng, t, rows, "some")


def _few(count: int) -> Make:
    """Return a maker of arrays with so many different values."""

    def make(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
        pool = random_array(rng, t, count, "none")
        return pool.take(pa.array(np.arange(rows) // 3 % count))

    return make


def _small(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    """Return numbers that need few of their bits."""
    width = np.dtype(f"u{t.bit_width // 8}")
    raw = rng.integers(0, 60, rows).astype(width)
    return pa.Array.from_buffers(t, rows, [None, pa.py_buffer(raw)])


def _runs(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    """Return long runs of a few hundred values."""
    pool = random_array(rng, t, rows // 40 + 1, "none")
    return pool.take(pa.array(np.arange(rows) // 40))


def _waves(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    return pa.array(np.sin(np.arange(rows) / 100).astype(t.to_pandas_dtype()), t)


def _sentences(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    texts = [f"some text, number {i} and {i * 7919 % 100_003}" for i in range(rows)]
    return pa.array(texts, pa.string()).cast(t)


def _nothing(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    return pa.nulls(rows, t)


LISTS = [pa.list_(t, 3) for t in FIXED]
WORDS = [t for t in (*INTEGERS, *TIMES) if t != pa.date64()]  # which is whole days only
PACKABLE = [pa.struct([("a", t), ("b", pa.uint16())]) for t in FIXED if not pa.types.is_boolean(t)]
DICTIONARIES = [pa.dictionary(t, pa.string()) for t in INTEGERS]
PLAIN = {"compression": "none", "bss": "off"}

ENCODED = {
    "flat": Encoded(FIXED, _any, PLAIN, {MiniBlock, e.Flat}, {MiniBlock, e.Flat}),
    "flat, NULLs": Encoded(
        FIXED, _holes, PLAIN, {MiniBlock, e.OutOfLineBitpacking}, {MiniBlock, e.OutOfLineBitpacking}
    ),
    "bit-packed": Encoded(
        WORDS, _small, {}, {MiniBlock, e.InlineBitpacking}, {MiniBlock, e.InlineBitpacking}
    ),
    "runs": Encoded(WORDS, _runs, {"rle-threshold": "0.9"}, {MiniBlock, e.Rle}, {MiniBlock, e.Rle}),
    "split": Encoded(
        FLOATS[1:],
        _waves,
        {"compression": "lz4", "bss": "on"},
        {e.General, e.ByteStreamSplit},
        {e.General, e.ByteStreamSplit},
    ),
    "zstd": Encoded(
        [*FLOATS, *TEXTS],
        lambda rng, t, n: _waves(rng, t, n) if t in FLOATS else _sentences(rng, t, n),
        {"compression": "zstd", "bss": "off"},
        {e.General},
        {e.General},
    ),
    "text": Encoded(
        TEXTS, _sentences, {"compression": "none"}, {MiniBlock, e.Variable}, {MiniBlock, e.Variable}
    ),
    "text, any": Encoded(TEXTS, _holes, {}, {MiniBlock}, {MiniBlock}),
    "FSST": Encoded(TEXTS, _sentences, {"compression": "fsst"}, {e.Fsst}, {e.Fsst}),
    "few texts": Encoded(TEXTS, _few(30), {}, {MiniBlock, e.Variable}, {MiniBlock, e.Variable}),
    "dictionaries": Encoded(DICTIONARIES, _holes, {}, {MiniBlock}, {MiniBlock}),
    "full-zip": Encoded(FIXED, _any, FULL_ZIP, {FullZip, e.Flat}, {FullZip, e.Flat}),
    "full-zip, NULLs": Encoded(FIXED, _holes, FULL_ZIP, {FullZip, e.Flat}, {FullZip, e.Flat}),
    "full-zip text": Encoded(
        TEXTS, _holes, FULL_ZIP | {"compression": "none"}, {FullZip, e.Variable}, {FullZip}
    ),
    "lists of one size": Encoded(
        LISTS, _any, {}, {MiniBlock, e.FixedSizeList}, {MiniBlock, e.FixedSizeList}
    ),
    "lists of one size, NULLs": Encoded(
        LISTS, _holes, {}, {MiniBlock, e.FixedSizeList}, {MiniBlock, e.FixedSizeList}
    ),
    "packed": Encoded(
        PACKABLE, _any, {"packed": "true"}, {MiniBlock, e.PackedStruct}, {MiniBlock, e.PackedStruct}
    ),
    "all NULL": Encoded(
        [*FIXED, *TEXTS, *DICTIONARIES, pa.null()], _nothing, {}, {ConstantPage}, {ConstantPage}
    ),
    "lists": Encoded(
        [pa.list_(t) for t in (*INTEGERS, *TEXTS, pa.bool_())], _holes, {}, {MiniBlock}, {MiniBlock}
    ),
}


def _table(case: Encoded, rows: int) -> pa.Table:
    rng = np.random.default_rng(rows)
    arrays = [case.make(rng, t, rows) for t in case.types]
    metadata = {KEY + key: value for key, value in case.metadata.items()} or None
    fields = [pa.field(f"c{n}", t, metadata=metadata) for n, t in enumerate(case.types)]
    return pa.table(arrays, schema=pa.schema(fields))


def _picks(rows: int) -> Iterator[Rows]:
    """Yield all rows, slices that begin or end at the border of a chunk, and scattered rows."""
    yield Rows.between(0, rows)
    edges = [(0, 1), (1, CHUNK), (CHUNK - 1, CHUNK + 1), (CHUNK, rows), (CHUNK + 1, 3 * CHUNK + 1)]
    for start, end in [*edges, (rows - 1, rows)]:
        if 0 <= start < min(end, rows):
            yield Rows.between(start, min(end, rows))
    if rows:
        yield Rows.at(np.unique(np.random.default_rng(rows).integers(0, rows, 20)))


def _differences(file: DataFile, table: pa.Table) -> Iterator[str]:
    for rows in _picks(table.num_rows):
        chunks = file.read_rows(file.schema.fields, file.column_of, rows)
        arrays = [pa.chunked_array(c, f.type) for c, f in zip(chunks, table.schema, strict=True)]
        got = pa.table(arrays, names=table.schema.names)
        different = difference(got, table.take(pa.array(rows.indices())))
        if different:
            yield f"rows {rows.starts[:3]} to {rows.ends[:3]}: {different}"


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("name", ENCODED)
def test_file_of_pylance_with_each_encoding_and_size_is_read(
    newest: Oracle, name: str, rows: int, version: str, tmp_path: Path
) -> None:
    case, path = ENCODED[name], tmp_path / "x.lance"
    table = _table(case, rows)
    newest.call("write_file", path=str(path), table=table, version=version)
    assert not list(_differences(open_file(path), table))
    if rows > CHUNK:
        assert case.theirs <= classes_in(path)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("name", ENCODED)
def test_file_of_pennon_with_each_encoding_and_size_is_read_by_pylance(
    newest: Oracle, name: str, rows: int, version: Any, tmp_path: Path
) -> None:
    case, path = ENCODED[name], tmp_path / "x.lance"
    table = _table(case, rows)
    write(path, table, version=version)
    assert not list(_differences(open_file(path), table))
    if rows > CHUNK:
        assert case.ours <= classes_in(path)
    if rows:
        indices = [row for row in (0, CHUNK - 1, CHUNK, rows - 1) if row < rows]
        taken = newest.call("take_file", path=str(path), out=True, indices=sorted(set(indices)))
        assert difference(taken, table.take(sorted(set(indices)))) is None
    assert difference(newest.call("read_file", path=str(path), out=True), table) is None


def _may_be_any_bits(t: pa.DataType) -> bool:
    """Say whether Arrow finds all bits valid; a date64 is whole days, a time within a day."""
    below = [t.field(number).type for number in range(t.num_fields)]
    is_limited = t == pa.date64() or pa.types.is_time(t)
    return not is_limited and all(map(_may_be_any_bits, below))


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("name", ENCODED)
def test_damaged_2_1_encodings_raise_typed_errors_or_read(
    name: str, version: Any, tmp_path: Path
) -> None:
    path, chance = tmp_path / "x.lance", random.Random(name)
    table = _table(ENCODED[name], CHUNK + 1)
    size = write(
        path,
        table.select([f.name for f in table.schema if _may_be_any_bits(f.type)]),
        version=version,
    )
    sound = path.read_bytes()
    for _ in range(MUTANTS):
        damaged = bytearray(sound)
        damaged[chance.randrange(size)] ^= 1 << chance.randrange(8)
        path.unlink()  # which may still be mapped
        path.write_bytes(damaged)
        try:
            found = LanceFileReader(path).read_all().to_table()
        except LanceError:
            continue
        found.validate(full=True)
