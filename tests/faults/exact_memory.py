"""Gives every buffer an allocation of its own, of just its size, so that a sanitizer sees each slip.

Stores answer with slices of a map, and Arrow's pool rounds sizes up to 64 bytes: one byte too far is
still somebody's memory.  As a plugin of pytest (``-p tests.faults.exact_memory``) it is for whole runs;
`scripts/sanitize.sh` uses it so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRequest
from pennon.io.mapped import MappedReader

Read: TypeAlias = Callable[[MappedReader, Sequence[ByteRequest]], list[pa.Buffer]]


def install() -> None:
    """Let stores answer with copies, and Arrow allocate what it is asked for."""
    MappedReader.read = _copying(MappedReader.read)  # type: ignore[method-assign, assignment]
    pa.allocate_buffer = allocate


def _copying(read: Read) -> Read:
    def answer(self: MappedReader, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        return [pa.py_buffer(np.array(np.frombuffer(b, np.uint8))) for b in read(self, requests)]

    return answer


def allocate(size: int, *_: Any, **__: Any) -> pa.Buffer:
    """Return a buffer of ``size`` bytes, like `pyarrow.allocate_buffer`."""
    return pa.py_buffer(np.empty(size, np.uint8))


def pytest_configure() -> None:
    """Begin when pytest does."""
    install()
