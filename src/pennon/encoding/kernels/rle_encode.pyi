"""Run lengths, byte streams, values under NULLs, and hashes, whole pages at once."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

Words = TypeVar("Words", bound=npt.NDArray[Any])

def count_runs(values: Words) -> int:
    """Return how many runs of equal values there are."""

def encode_runs(
    values: Words, most_values: int, most_bytes: int
) -> tuple[Words, Bytes, Int64Array, Int64Array]:
    """Return run values, run lengths (1 to 255), and each chunk's number of values and of runs.

    A chunk is the largest power of two of values, at most ``most_values``, whose runs take no more
    than ``most_bytes``; the last one takes what is left.  Runs end with their chunk.
    Raises ValueError if not even one run fits.
    """

def split_streams(data: Bytes, width: int, counts: Int64Array) -> Bytes:
    """Return, chunk by chunk, byte 0 of all values, then byte 1, and so on.

    Raises ValueError if the chunks do not divide ``data``, values of ``width`` bytes.
    """

def fill_nulls(values: Words, validity: Bytes, bit_offset: int) -> Words:
    """Return the values with each NULL the same as the value before it (or the first of all).

    That makes no run longer and no value wider.  Raises ValueError if the bitmap is too short.
    """

def hash_pieces(data: Bytes, starts: Int64Array, sizes: Int64Array) -> npt.NDArray[np.uint64]:
    """Return a hash of each piece ``data[starts[i] : starts[i] + sizes[i]]``.

    Equal pieces have equal ones.  Of a long piece, only its ends and its size are looked at.  Raises
    ValueError if a piece leaves the data.
    """

def tally(keys: Words, sizes: Int64Array) -> tuple[int, int, int, int]:
    """Return how many keys are distinct, come once, and come twice, and the sizes of distinct ones.

    Raises ValueError if there is not a size for each key.
    """

def number_pieces(
    data: Bytes, offsets: Int64Array, counted: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], tuple[int, int, int, int]] | None:
    """Number the pieces ``data[offsets[i] : offsets[i + 1]]``, equal ones alike, by their first occurrence.

    Returns the number of each piece, the place where each number occurs first, and what `tally` says of the
    first ``counted`` pieces.  None if a piece has more than 128 bytes, or all are empty.  Raises ValueError if a piece leaves the data.
    """

def join_pieces(
    data: Bytes, offsets: Int64Array, places: npt.NDArray[np.int32]
) -> tuple[Int64Array, Bytes]:
    """Return the offsets and bytes of the pieces at some places, one after the other.

    Raises ValueError if there is no such piece, or one leaves the data.
    """
