"""Posting lists of full-text indices, written: all of a partition at once.

``ends``: the postings of token i are numbers ``ends[i]`` to ``ends[i + 1]`` of the arrays, documents ascending.
Blocks have ``size`` documents, 128 or 256.  Each returns how much of ``target`` it filled.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]
Words: TypeAlias = npt.NDArray[np.uint32]

def encode_postings(
    ends: Int64Array,
    docs: Words,
    frequencies: Words,
    scores: npt.NDArray[np.float32],
    size: int,
    is_varint: bool,
    target: Bytes,
    blob_ends: Int64Array,
) -> int:
    """Write the blocks of all posting lists, tails as varints or as plain words; ``blob_ends[1:]``: where each ends.

    A full block takes at most 10 bytes and 8 for each document, a tail 4 and 10 for each document.
    """

def encode_impacts(
    ends: Int64Array,
    docs: Words,
    frequencies: Words,
    lengths: Words,
    size: int,
    target: Bytes,
    blob_ends: Int64Array,
) -> int:
    """Write bounds of each block, and behind those of a list of each 32 blocks: at most 16 bytes each."""

def encode_positions(
    ends: Int64Array,
    frequencies: Words,
    positions: Words,
    size: int,
    target: Bytes,
    stream_ends: Int64Array,
    block_starts: Words,
) -> int:
    """Write the positions of all posting lists; ``block_starts``: of each block, in its list's stream.

    Takes at most 5 bytes a position, and 128.
    """

def encode_position_lists(
    frequencies: Words, positions: Words, target: Bytes, blob_ends: Int64Array
) -> int:
    """Write the positions of each document as a list of blobs: their number, packed ones, and the rest.

    Takes at most 8 bytes a document, 5 a position, and 128.
    """
