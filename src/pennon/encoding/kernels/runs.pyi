"""Run lengths and byte streams, all chunks of a page at once."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

def expand_runs(
    value_data: Bytes,
    value_starts: Int64Array,
    value_sizes: Int64Array,
    length_data: Bytes,
    length_starts: Int64Array,
    length_sizes: Int64Array,
    length_width: int,
    counts: Int64Array,
    target: npt.NDArray[Any],
) -> None:
    """Fill ``target`` (8, 16, 32 or 64 bit words) with the values of all chunks.

    Chunk i has as many values as lengths, the lengths of ``length_width`` bytes (1, 2 or 4).  What
    its last run has beyond ``counts[i]`` values is ignored.  Raises FormatError if buffers leave
    their data, values and lengths differ in number, or make too few values.
    """

def split_runs(data: Bytes, starts: Int64Array, sizes: Int64Array) -> Int64Array:
    """Return the bytes that values take in each chunk of runs in one buffer, which begins with that number.

    Chunk i is ``data[starts[i] : starts[i] + sizes[i]]``.  Raises FormatError if it is shorter than its values.
    """

def join_streams(
    data: Bytes,
    starts: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    width: int,
    target: Bytes,
) -> None:
    """Fill ``target`` with values of ``width`` bytes from chunks that hold byte 0 of all, byte 1, ...

    Raises FormatError if a chunk does not have ``counts[i] * width`` bytes.
    """
