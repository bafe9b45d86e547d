"""Pages are encoded on threads: the same bytes for any number of them, and errors reach the caller."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from pennon.core import thread_pools as threads
from pennon.core.byte_ranges import ByteRange
from pennon.errors import UnsupportedError
from pennon.file.container.write_limits import PageLimits
from pennon.file.open import create_container_file, open_container_file
from pennon.io import MemoryStore
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V2_0, V2_1, FileVersion

_ROWS = 30_000


def _same(workers: ThreadPoolExecutor) -> ThreadPoolExecutor:
    return workers


def _table() -> pa.Table:
    rng = np.random.default_rng(5)
    numbers = pa.array(rng.integers(0, 1 << 40, _ROWS), mask=rng.random(_ROWS) < 0.1)
    text = numbers.cast(pa.string())
    offsets = pa.array(np.arange(0, _ROWS + 1, 3), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, text)
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([("n", numbers.type), ("t", text.type), ("l", lists.type), blob])
    blobs = pa.array([bytes([n % 256]) * 20 for n in range(len(lists))], pa.large_binary())
    columns = [numbers[: len(lists)], text[: len(lists)], lists, blobs]
    return pa.table(columns, schema=schema)


def _written(version: FileVersion, table: pa.Table) -> bytes:
    store = MemoryStore(str(version))
    schema = schema_from_arrow(table.schema)
    limits = PageLimits(cache_bytes=100_000, max_page_bytes=150_000)
    with create_container_file(store.open_writer("f"), schema, version, limits=limits) as writer:
        for batch in table.to_batches(max_chunksize=700):
            writer.write(batch)
    source = store.open("f")
    assert open_container_file(source).num_rows == table.num_rows
    whole: bytes = source.read([ByteRange(0, source.size_bytes)])[0].to_pybytes()
    return whole


@pytest.mark.parametrize("version", [V2_0, V2_1])
def test_written_bytes_are_equal_for_any_number_of_threads(
    version: FileVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, found = _table(), set()
    for count in (1, 2, 7):
        with ThreadPoolExecutor(count) as workers:
            monkeypatch.setattr(threads, "pool", partial(_same, workers))
            found.add(_written(version, table))
    assert len(found) == 1
    assert len(found.pop()) > 10 * threads.SMALL_COST


def test_encoding_error_on_a_thread_abandons_the_file() -> None:
    rows = pa.array([{"x": None if n == 29_000 else n} for n in range(_ROWS)])
    field = pa.field("p", rows.type, metadata={"packed": "true"})
    store = MemoryStore("an error on a thread")
    schema = schema_from_arrow(pa.schema([field]))
    writer = create_container_file(store.open_writer("f"), schema, V2_1)
    writer.write(pa.record_batch([rows], schema=pa.schema([field])))
    with pytest.raises(UnsupportedError, match="'x'"):
        writer.finish()
    assert list(store.list("")) == []
