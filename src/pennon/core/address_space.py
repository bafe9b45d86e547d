"""The address space that this process may still take, where ``ulimit -v`` limits it.

Where a thread gets no memory for its own variables, the C library ends the process; jemalloc does so where it
gets none for its tables.  So who starts threads, or chooses where memory comes from, asks here before.
"""

from __future__ import annotations

from typing import Final

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

_THREAD_BYTES: Final = 192 * 1024 * 1024
"""A new thread takes at most so much: for its stack, and for the heap that the C library gives it."""


def is_limited() -> bool:
    """Return whether there is a limit at all."""
    return resource is not None and _limit_bytes() != resource.RLIM_INFINITY


def has_room_for_thread() -> bool:
    """Return whether this process may take the address space of another thread."""
    if not is_limited():
        return True
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:  # noqa: PTH123 - a path takes longer than the file
            pages = int(file.read(32).split()[0])
    except OSError:
        return True
    return _limit_bytes() - pages * resource.getpagesize() >= _THREAD_BYTES


def _limit_bytes() -> int:
    return resource.getrlimit(resource.RLIMIT_AS)[0]
