"""Posting lists of full-text indices, many at a time: read, thinned out and put in order."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]
Words: TypeAlias = npt.NDArray[np.uint32]

def order_of_numbers(numbers: Words, ends: Int64Array, order: Int64Array) -> None:
    """Fill ``order`` with the places of numbers, sorted by these, equal ones as they come.

    Number n is at ``order[ends[n]:ends[n + 1]]``.  Raises ValueError for one that ``ends`` has no room for.
    """

def gather_runs(
    values: Words, starts: Int64Array, counts: Words, order: Int64Array, out: Words
) -> None:
    """Fill ``out`` with runs of values, in some order: run i is ``values[starts[i]:starts[i] + counts[i]]``."""

def keep_documents(
    ends: Int64Array, docs: Words, frequencies: Words, positions: Words, numbers: Int64Array
) -> tuple[int, int]:
    """Give documents their new ``numbers``, in place; those of a number below 0 are dropped.

    Returns how many documents of all lists are left, and how many positions, which may be none at all.
    """

def sort_places(
    tokens: Words,
    lengths: Words,
    positions: Words,
    ends: Int64Array,
    docs: Words,
    frequencies: Words,
    placed: Words,
) -> int:
    """Make posting lists of the tokens of documents, of which document i has ``lengths[i]``.

    Those of token n are numbers ``ends[n]`` to ``ends[n + 1]`` of ``docs`` and ``frequencies``, which need room for
    all places; returns how much of it is filled.  ``placed`` are the ``positions`` in that order, unless there are
    none.
    """

def decode_lists(
    data: Bytes,
    blobs: Int64Array,
    lists: Int64Array,
    counts: Int64Array,
    size: int,
    is_varint: bool,
    limit: int,
    docs: Words,
    frequencies: Words,
) -> None:
    """Fill ``docs`` and ``frequencies`` with whole posting lists, one behind the other.

    List i is of blobs ``lists[i]`` to ``lists[i + 1]`` and has ``counts[i]`` documents; else as
    `pennon.index.kernels.text.postings.decode_blocks`.
    """
