"""Memory for values that are about to be decoded.

Arrow's memory pool keeps what was given back to it, in large pages.  Memory that comes fresh from the
system costs a fault for every 4 KiB that is touched, which is far more than it costs to decode them.

What it keeps may become several times what is in use, above all where one thread decodes and another
gives back: mimalloc, which is Arrow's usual pool, held 90 MB for batches of 6 MB.  So what a stream decodes comes from
jemalloc, where Arrow has it, and a thread that goes on decoding lets go of what is kept now and then.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.address_space import is_limited

S = TypeVar("S", bound=np.generic)

_SMALL_BYTES: Final = 16 * 1024
"""Below this, the allocator of the C library does the same at less cost."""
_HUGE_BYTES: Final = 8 * 1024 * 1024
"""From here on jemalloc keeps nothing that is given back, so that the next one is faulted in again."""
_JOIN_BYTES: Final = 64 * 1024
"""The total size from which `joined` copies buffers without the interpreter's lock."""
_LET_GO_BYTES: Final = 192 * 1024 * 1024
"""What all threads decode together before they let go.

Far less would cost more: what was given back has to be faulted in again.
"""
_LEAST_BYTES: Final = 8 * 1024 * 1024
"""What each of many threads decodes at least: those of remote stores mostly wait."""


class _Tally(threading.local):
    """Bytes that this thread has decoded since it last returned memory to the system."""

    threads = 0
    """How many threads there have been that decode."""
    size_bytes = 0

    def __init__(self) -> None:
        _Tally.threads += 1


_tally = _Tally()


def decoded(size_bytes: int) -> None:
    """Note that this thread decoded so many bytes of a longer work; see the module."""
    _tally.size_bytes += size_bytes
    if _tally.size_bytes >= max(_LET_GO_BYTES // _Tally.threads, _LEAST_BYTES):
        _tally.size_bytes = 0
        (_stream_pool() or pa.default_memory_pool()).release_unused()


class _Here(threading.local):
    """The pool that this thread allocates from; None: Arrow's default pool."""

    pool: pa.MemoryPool | None = None


_here = _Here()


@cache
def _jemalloc() -> pa.MemoryPool | None:
    """Return Arrow's pool of jemalloc; None if this build of Arrow has none."""
    try:
        return pa.jemalloc_memory_pool()
    except NotImplementedError:
        return None


def _stream_pool() -> pa.MemoryPool | None:
    """Return the pool for memory of streams; None where that is the default pool.

    It is where another one than mimalloc was chosen, and where address space is limited: jemalloc does not outlive
    the lack of it.
    """
    if is_limited() or pa.default_memory_pool().backend_name != "mimalloc":
        return None
    return _jemalloc()


class Streaming:
    """A block in which this thread allocates memory of a stream: it is soon given back, maybe by another thread."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _here.pool
        _here.pool = _stream_pool()

    def __exit__(self, *_: object) -> None:
        _here.pool = self._before


def current_pool() -> pa.MemoryPool | None:
    """Return the pool that Arrow's functions allocate from in this thread, as their ``memory_pool``."""
    return _here.pool


def call_arrow(name: str, *arguments: pa.Array[Any]) -> pa.Array[Any]:
    """Return what a function of ``pyarrow.compute`` gives, in memory of this thread; the module is loaded by the first call."""
    function = getattr(import_module("pyarrow.compute"), name)
    found: pa.Array[Any] = function(*arguments, memory_pool=_here.pool)
    return found


def allocate_buffer(size_bytes: int) -> pa.Buffer:
    """Return a buffer of any content."""
    return pa.allocate_buffer(size_bytes, _here.pool if size_bytes < _HUGE_BYTES else None)


def allocate(count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of ``count`` values of any content."""
    kind = np.dtype(dtype)
    size_bytes = count * kind.itemsize
    if size_bytes < _SMALL_BYTES:
        return np.empty(count, kind)
    return np.frombuffer(allocate_buffer(size_bytes), kind)


def joined(parts: Sequence[pa.Buffer]) -> npt.NDArray[np.uint8]:
    """Return the bytes of buffers, one behind the other."""
    size_bytes = sum([part.size for part in parts])
    if size_bytes < _JOIN_BYTES:
        return np.frombuffer(b"".join(parts), np.uint8)
    whole = allocate(size_bytes, np.uint8)
    end = 0
    for part in parts:
        start, end = end, end + part.size
        whole[start:end] = np.frombuffer(part, np.uint8)
    return whole


def copied(values: npt.NDArray[S]) -> npt.NDArray[S]:
    """Return a copy, row by row, in such memory."""
    copy: npt.NDArray[S] = allocate(values.size, values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def kept(values: npt.NDArray[S], held_bytes: int) -> npt.NDArray[S]:
    """Return values to be remembered: copied where they would hold far more than they are."""
    return values if held_bytes < 2 * values.nbytes else copied(values)
