"""Rows of many pages, each with a dictionary of its own: picked together, each looked up in its page's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pennon.core.byte_ranges import ByteRange
from pennon.encoding.rows import Rows
from pennon.errors import FormatError
from pennon.file.container.file import DataFile
from pennon.file.container.write_limits import PageLimits
from pennon.file.inspect import inspect_pages
from pennon.file.open import create_container_file, open_container_file
from pennon.io import MemoryStore
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V2_2

ROWS = 6_000
RNG = np.random.default_rng(9)
STEPS = np.repeat(np.arange(ROWS // 1_000) << 40, 1_000)
"""Each page has other values."""


def numbers(kind: pa.DataType, count: int) -> pa.Array:
    some = pa.array((RNG.integers(0, 7, count) << 33) + np.resize(STEPS, count))
    return some.cast(kind) if kind != pa.float32() else pa.array(some.to_numpy().astype(np.float32))


def with_nulls(array: pa.Array) -> pa.Array:
    gone = RNG.random(len(array)) < 0.2
    return pa.array(array.to_pylist(), array.type, mask=gone)


def lists(items: pa.Array) -> pa.Array:
    sizes = RNG.integers(0, 4, ROWS)
    ends = np.concatenate([[0], np.cumsum(sizes)]) * len(items) // int(sizes.sum())
    whole = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items)
    return pa.array(whole.to_pylist(), whole.type, mask=RNG.random(ROWS) < 0.1)


COLUMNS = {
    "numbers": lambda: numbers(pa.int64(), ROWS),
    "numbers with NULLs": lambda: with_nulls(numbers(pa.int64(), ROWS)),
    "times with NULLs": lambda: with_nulls(numbers(pa.timestamp("us"), ROWS)),
    "floats": lambda: numbers(pa.float32(), ROWS),
    "lists": lambda: lists(numbers(pa.int64(), 2 * ROWS)),
    "lists of NULLs": lambda: lists(with_nulls(numbers(pa.int64(), 2 * ROWS))),
    "lists of lists": lambda: pa.ListArray.from_arrays(
        pa.array(range(ROWS + 1), pa.int32()), lists(with_nulls(numbers(pa.int64(), 2 * ROWS)))
    ),
    "structs": lambda: pa.StructArray.from_arrays(
        [with_nulls(numbers(pa.int64(), ROWS))], ["x"], mask=pa.array(RNG.random(ROWS) < 0.1)
    ),
    "some NULL pages": lambda: pa.array(
        [None if 2_000 <= row < 4_000 else (row % 5) << 35 for row in range(ROWS)], pa.int64()
    ),
}


def written(store: MemoryStore, column: pa.Array) -> DataFile:
    """Return a file of a column whose pages have dictionaries, or most of them."""
    schema = pa.schema([("c", column.type)])
    sink, limits = store.open_writer("f.lance"), PageLimits(max_page_bytes=8_000)
    with create_container_file(sink, schema_from_arrow(schema), V2_2, limits=limits) as writer:
        writer.write(pa.record_batch([column], schema=schema))
    pages = inspect_pages(store.open("f.lance")).pages
    assert sum("dictionary" in str(page.encodings) for page in pages) >= 3, pages
    return open_container_file(store.open("f.lance"))


def read(file: DataFile, rows: Rows) -> pa.ChunkedArray:
    ((*chunks,),) = file.read_rows(file.schema.fields, file.column_of, rows)
    found = pa.chunked_array(chunks)
    found.validate(full=True)
    return found


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_of_many_pages(request: pytest.FixtureRequest, name: str) -> None:
    column = COLUMNS[name]()
    file = written(MemoryStore(request.node.name), column)
    for count in (2, 7, 60, 900):
        some = np.sort(RNG.choice(ROWS, count, replace=False))
        found = read(file, Rows.at(some))
        assert found.to_pylist() == column.take(pa.array(some)).to_pylist()


@pytest.mark.parametrize("name", COLUMNS)
def test_whole_pages_with_dictionaries_become_one_array(
    request: pytest.FixtureRequest, name: str
) -> None:
    column = COLUMNS[name]()
    file = written(MemoryStore(request.node.name), column)
    pages = len(next(iter(file.columns())).pages)
    for low, high in ((0, ROWS), (0, ROWS), (700, ROWS), (1, 5_000)):
        found = read(file, Rows.between(low, high))
        assert found.to_pylist() == column.slice(low, high - low).to_pylist()
        assert low or found.num_chunks < pages


def test_whole_pages_of_an_arrow_dictionary_keep_their_items() -> None:
    texts = pa.array([f"item {row // 1_000} {row % 7}" for row in range(ROWS)])
    column = texts.dictionary_encode()
    store = MemoryStore("arrow dictionary")
    file = written(store, column)
    assert read(file, Rows.between(0, ROWS)).to_pylist() == texts.to_pylist()


def test_index_outside_of_the_dictionary_of_one_page_names_that_page() -> None:
    """Read as one of several pages, and alone."""
    store = MemoryStore("damage")
    file = written(store, COLUMNS["numbers"]())
    reader = store.open("f.lance")
    data = bytearray(reader.read([ByteRange(0, reader.size_bytes)])[0].to_pybytes())
    (column,) = file.columns()
    chunks = column.pages[2].buffers[1]
    data[chunks.position + 16 : chunks.end] = b"\xff" * (chunks.size_bytes - 16)
    store.put("f.lance", bytes(data))
    damaged = open_container_file(store.open("f.lance"))
    for rows in (Rows.between(0, ROWS), Rows.at(np.arange(0, ROWS, 7))):
        with pytest.raises(FormatError, match=r"page 2"):
            read(damaged, rows)
