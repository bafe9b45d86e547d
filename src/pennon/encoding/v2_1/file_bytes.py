"""The bytes of one of several mapped files whose pages are read together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRequest, Int64Array, SparseRead
from pennon.encoding.arrow_buffers import Bytes, as_bytes

Read: TypeAlias = Callable[[Sequence[ByteRequest]], list[pa.Buffer]]
"""Answers one round: the method of an object's reader."""


class Looks(Protocol):
    """A mapped file that keeps account of the ranges that are looked at."""

    def look(self, starts: Int64Array, ends: Int64Array) -> Bytes | None:
        """Return all bytes, to look at ascending ranges; None if these are better read."""


Source: TypeAlias = Bytes | Looks | Read
"""The bytes of a file, or what gives some of them."""


def bytes_of_each(
    sources: Sequence[Source], starts: Int64Array, ends: Int64Array, cuts: Sequence[int]
) -> tuple[list[Bytes], list[int]] | None:
    """Return bytes of each file that hold ascending ranges of it, and where they begin in the file.

    File f has the ranges ``cuts[f]`` to ``cuts[f + 1]``.  None if those of one lie far apart while account is kept of
    what is looked at.
    """
    data: list[Bytes] = []
    origins = [0] * len(sources)
    for number, source in enumerate(sources):
        if isinstance(source, np.ndarray):
            data.append(source)
            continue
        low, high = cuts[number], cuts[number + 1]
        if callable(source):
            request = SparseRead(starts[low:high], ends[low:high])
            hull = request.hull
            (answer,) = source([request])
            found = as_bytes(answer) if answer.size == hull.size_bytes else None
            origins[number] = hull.position
        else:
            found = source.look(starts[low:high], ends[low:high])
        if found is None:
            return None
        data.append(found)
    return data, origins
