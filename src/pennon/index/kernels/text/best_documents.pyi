"""Scoring documents of posting lists: those that have any of some tokens, all of them, or all in a row.

List i has ``docs[i]``, which ascend, and ``shares[i]``, what the token contributes to each at weight 1; ``tops[i]``
is the most of each 128 of these.  The score of a document is the sum of ``weights[i] * shares[i]``, in the order
of the lists.  Just documents below ``documents`` are looked at, with a score of at least ``least``, for which
``seen`` is not 0; an empty ``seen`` is of all.  Unless ``heap`` is empty, it holds the best scores so far, at first
none: -inf.  Then documents are found that have as much as the least of these, or more, if ``first_wins``.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]
Words: TypeAlias = npt.NDArray[np.uint32]
Floats: TypeAlias = npt.NDArray[np.float32]
Numbers: TypeAlias = npt.NDArray[np.uint64]

def score_any(
    docs: list[Words],
    shares: list[Floats],
    tops: list[Floats],
    weights: Floats,
    start: int,
    documents: int,
    least: float,
    seen: Bytes,
    heap: Floats,
    first_wins: bool,
    out_docs: Words,
    out_scores: Floats,
    beside: int = 0,
    factor: float = 1,
) -> tuple[int, int]:
    """Find documents that have any of the tokens, from ``start`` on, as long as there is room for a window of 2048 more.

    Windows that give no document enough are left out.  The last ``beside`` lists add no documents: ``factor`` times
    what they give is added to the scores.  Returns where to go on, and how many documents were found.
    """

def score_every(
    docs: list[Words],
    shares: list[Floats],
    tops: list[Floats],
    weights: Floats,
    documents: int,
    least: float,
    seen: Bytes,
    heap: Floats,
    first_wins: bool,
    ends: list[Int64Array],
    places: list[Words],
    steps: Int64Array,
    slop: int,
    out_docs: Words,
    out_scores: Floats,
    bits: list[Numbers],
    ranks: list[Words],
) -> int:
    """Find documents that have all of the tokens; return how many.

    ``bits[i]`` has a bit for each document, set for those of list i, or is empty; then ``ranks[i]`` says how many come
    before every 256th document.

    Unless ``ends`` is empty, also in order: document k of list i has its token at ``places[i][ends[i][k]:ends[i][k +
    1]]``, ascending, ``steps[i]`` behind the token before, or up to ``slop`` more.
    """
