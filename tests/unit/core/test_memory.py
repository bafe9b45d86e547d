"""Memory for decoded values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pennon.core.memory import Streaming, allocate, copied, current_pool, kept


@pytest.mark.parametrize("count", [0, 1, 2047, 2048, 100_000])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, "<u2"])
def test_allocated_array_has_the_requested_size_and_type(count: int, dtype: str) -> None:
    array = allocate(count, dtype)
    array[:] = 7
    assert array.shape == (count,)
    assert array.dtype == np.dtype(dtype)
    assert pa.py_buffer(array).size == count * np.dtype(dtype).itemsize


def test_large_room_is_allocated_from_the_arrow_pool() -> None:
    before = pa.total_allocated_bytes()
    array = allocate(1 << 20, np.uint8)
    assert pa.total_allocated_bytes() - before >= len(array)
    buffer = pa.py_buffer(array)
    del array
    assert pa.total_allocated_bytes() - before >= buffer.size
    del buffer
    assert pa.total_allocated_bytes() == before


def test_memory_of_streams_comes_from_jemalloc_where_mimalloc_is_usual() -> None:
    if pa.default_memory_pool().backend_name != "mimalloc":
        assert current_pool() is None
        return
    pool = pa.jemalloc_memory_pool()
    before, usual = pool.bytes_allocated(), pa.total_allocated_bytes()
    with Streaming():
        with Streaming():
            array = allocate(1 << 20, np.uint8)
        assert current_pool() is not None
    assert current_pool() is None
    assert pool.bytes_allocated() - before >= 1 << 20
    del array
    assert pool.bytes_allocated() == before
    assert pa.total_allocated_bytes() == usual


def test_memory_of_streams_comes_from_a_default_pool_that_is_chosen() -> None:
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        with Streaming():
            assert current_pool() is None
    finally:
        pa.set_memory_pool(usual)


def test_copied_array_is_c_contiguous() -> None:
    values = np.arange(60_000, dtype="u4").reshape(200, 300)
    for some in (values, values.T, values[::2, 5:], values[:0]):
        copy = copied(some)
        assert np.array_equal(copy, some)
        assert copy.flags.c_contiguous
        assert not np.shares_memory(copy, values)


def test_small_slice_is_copied_before_it_is_retained() -> None:
    whole = np.arange(100_000)
    assert np.shares_memory(kept(whole[:60_000], whole.nbytes), whole)
    assert not np.shares_memory(kept(whole[:50_000], whole.nbytes), whole)
    assert np.array_equal(kept(whole[:50_000], whole.nbytes), whole[:50_000])
