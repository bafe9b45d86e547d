"""Counters of what this process has read from stores: requests and bytes.

Additions take no lock: where the interpreter runs threads side by side, a count may be lost.  Kernels that read a local
file through its memory map are not counted: they make no request.
"""

from __future__ import annotations


class _ReadCounters:
    """The numbers of ranges and of bytes that readers returned."""

    __slots__ = ("ranges", "size_bytes")

    def __init__(self) -> None:
        self.ranges = 0
        self.size_bytes = 0


READ = _ReadCounters()


def iops_counter() -> int:
    """Return how many ranges of files this process has read.

    Ranges that lie close together are one request to an object store, and count as the ranges that they are.

    >>> before = pennon.iops_counter()
    >>> pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri).to_table().num_rows
    3
    >>> pennon.iops_counter() > before
    True
    """
    return READ.ranges


def bytes_read_counter() -> int:
    """Return how many bytes of files this process has read.

    >>> before = pennon.bytes_read_counter()
    >>> pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri).to_table().num_rows
    3
    >>> pennon.bytes_read_counter() > before
    True
    """
    return READ.size_bytes
