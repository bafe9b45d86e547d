"""Small pages that follow one another: read together, with the same rows and the same errors."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from pennon.core.byte_ranges import ByteRange
from pennon.encoding.rows import Rows
from pennon.errors import FormatError
from pennon.file.container.file import DataFile
from pennon.file.container.write_limits import PageLimits
from pennon.file.open import create_container_file, open_container_file
from pennon.io import MemoryStore
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V2_1

PAGE_ROWS = 100
PAGES = 12


def numbers(seed: int) -> list[object]:
    """Lists of numbers, NULL, empty and with NULLs in them."""
    draw = random.Random(seed)
    few = [None, [], [None, 7], [seed]]
    return [draw.choice([*few, list(range(draw.randrange(9)))]) for _ in range(PAGE_ROWS)]


def pairs(seed: int) -> list[object]:
    draw = random.Random(seed)
    return [
        [{"x": draw.randrange(99), "y": draw.random()} for _ in range(draw.randrange(4))]
        for _ in range(PAGE_ROWS)
    ]


def words(seed: int) -> list[object]:
    draw = random.Random(seed)
    return [[f"{draw.random()}" for _ in range(draw.randrange(3))] for _ in range(PAGE_ROWS)]


def plain(seed: int) -> list[object]:
    """Three pages of each kind: their levels say other things, and the last kind has no chunks."""
    make = [lambda n: [n], lambda n: [n] * (n % 3), lambda n: [None, n], lambda n: None]
    return [make[seed // 3 % 4](n) for n in range(PAGE_ROWS)]


COLUMNS = {
    "numbers": (pa.list_(pa.int64()), numbers),
    "pairs": (pa.list_(pa.struct([("x", pa.int32()), ("y", pa.float64())])), pairs),
    "words": (pa.list_(pa.string()), words),
    "plain": (pa.large_list(pa.int16()), plain),
}


def written(store: MemoryStore, name: str) -> pa.ChunkedArray:
    """Write a column of so many pages; return what it holds."""
    kind, make = COLUMNS[name]
    schema = pa.schema([("c", kind)])
    batches = [
        pa.record_batch([pa.array(make(seed), kind)], schema=schema) for seed in range(PAGES)
    ]
    sink = store.open_writer("f.lance")
    limits = PageLimits(cache_bytes=1)
    with create_container_file(sink, schema_from_arrow(schema), V2_1, limits=limits) as writer:
        for batch in batches:
            writer.write(batch)
        writer.finish()
    return pa.Table.from_batches(batches).column(0)


def opened(store: MemoryStore) -> DataFile:
    return open_container_file(store.open("f.lance"))


def read(file: DataFile, start: int, end: int) -> list[pa.Array]:
    (chunks,) = file.read_rows(file.schema.fields, file.column_of, Rows.between(start, end))
    for chunk in chunks:
        chunk.validate(full=True)
    return chunks


@pytest.mark.parametrize("name", COLUMNS)
def test_runs_of_small_pages_equal_their_rows(name: str) -> None:
    store = MemoryStore("runs")
    expected = written(store, name)
    file = opened(store)
    assert {len(column.pages) for column in file.columns()} == {PAGES}
    for start, end in [(0, 1200), (0, 1200), (100, 1100), (1, 1200), (99, 301), (150, 1199)]:
        assert pa.chunked_array(read(file, start, end)).equals(expected[start:end])


def test_runs_of_equal_layout_become_one_array() -> None:
    store = MemoryStore("runs")
    written(store, "pairs")
    assert [len(chunk) for chunk in read(opened(store), 0, 1200)] == [1200]
    assert [len(chunk) for chunk in read(opened(store), 50, 1200)] == [50, 1100]


def test_runs_of_unjoinable_pages_are_separate_chunks() -> None:
    store = MemoryStore("runs")
    expected = written(store, "plain")
    chunks = read(opened(store), 0, 1200)
    assert [len(chunk) for chunk in chunks] == [300, 300, 300, 100, 100, 100]
    assert pa.chunked_array(chunks).equals(expected)


def test_run_with_damaged_page_names_the_page() -> None:
    store = MemoryStore("runs")
    written(store, "numbers")
    reader = store.open("f.lance")
    damaged = bytearray(reader.read([ByteRange(0, reader.size_bytes)])[0].to_pybytes())
    (column,) = opened(store).columns()
    chunk_words = column.pages[7].buffers[0]
    damaged[chunk_words.position : chunk_words.end] = b"\xff" * chunk_words.size_bytes
    store.put("f.lance", bytes(damaged))
    with pytest.raises(FormatError, match="page 7"):
        read(opened(store), 0, 1200)
