"""Posting lists of full-text indices: their blocks, positions and bounds.

Blobs are given as ``data`` and ``ends``: blob i is ``data[ends[i]:ends[i + 1]]``.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]
Words: TypeAlias = npt.NDArray[np.uint32]
Floats: TypeAlias = npt.NDArray[np.float32]

def first_docs(
    data: Bytes, ends: Int64Array, size: int, is_varint: bool, ends_whole: bool, firsts: Words
) -> None:
    """Fill ``firsts`` with the first document of each block of ``size`` documents.

    ``ends_whole``: the last block has as many as the others.  ``is_varint``: how it is written if not.
    Raises FormatError if a block is too short, or does not come behind the one before it.
    """

def decode_blocks(
    data: Bytes,
    ends: Int64Array,
    chosen: Int64Array,
    size: int,
    last_count: int,
    is_varint: bool,
    limit: int,
    docs: Words,
    frequencies: Words,
) -> None:
    """Fill ``docs`` and ``frequencies`` with what some blocks have.

    Blocks have ``size`` documents (128 or 256), the last one ``last_count``.  Documents ascend and are below
    ``limit``.  Raises FormatError for a block that is damaged.
    """

def add_scores(
    docs: Words,
    frequencies: Words,
    lengths: Words,
    weight: float,
    average: float,
    scores: Floats,
) -> None:
    """Add to ``scores[doc]`` what a token contributes to each document.

    That is ``weight * 2.2 f / (f + 1.2 (0.25 + 0.75 lengths[doc] / average))``.  Documents without a place
    are left out.
    """

def find_frequencies(there: Words, frequencies: Words, docs: Words, found: Words) -> None:
    """Fill ``found`` with the frequencies of documents among those that are ``there``, 0 of others.

    Both ascend.
    """

def decode_positions(
    data: Bytes, ends: Int64Array, counts: Int64Array, frequencies: Words, positions: Words
) -> None:
    """Fill ``positions`` of blocks: streams of differences, begun anew with each document.

    Block i has ``counts[i]`` documents, and ``frequencies`` say how many positions each has.
    Raises FormatError if the streams do not have just these.
    """

def decode_position_lists(
    data: Bytes, blobs: Int64Array, lists: Int64Array, frequencies: Words, positions: Words
) -> None:
    """Fill ``positions`` of documents: blobs ``lists[i]`` to ``lists[i + 1]`` are those of document i.

    The first blob is how many there are; the others are packed differences of 128, then plain words.
    Raises FormatError if there are not as many as ``frequencies`` say.
    """
