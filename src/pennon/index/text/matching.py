"""Scoring the documents of a partition: those that have any token of a query, all, or all in a row.

Of the best documents that have any token, most are not looked at::

    documents      0        W        2W       3W       4W            windows of W documents
    fox            |   1.2  |  0.9   |   -    |  1.3   |             most that a block there gives
    quick          |   -    |  2.0   |  1.9   |   -    |
    together           1.2     2.9      1.9      1.3

Windows are taken by what they may give, best first, some at once: just their blocks are decoded.  When no other
window may give as much as the worst of those that were found, the search is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.kernels.postings import add_scores, find_frequencies
from pennon.index.row_set import Numbers
from pennon.index.text.arrays import Floats, Words
from pennon.index.text.bm25 import Statistics
from pennon.index.text.hits import Best, Hits
from pennon.index.text.partition import Partition
from pennon.index.text.postings import Places
from pennon.index.text.terms import Term

_Number = TypeVar("_Number", bound=np.integer[Any])

See: TypeAlias = Callable[[Words], tuple[npt.NDArray[np.bool_], Numbers]]
"""Of some documents: which of them may be found, and the addresses of these."""

_SHIFT: Final = 9
_WINDOW: Final = 1 << _SHIFT
_AT_ONCE: Final = 16
"""So many windows at first; each time four times as many."""
_MANY: Final = 4
"""Where more than one window of so many is left to look at, all of these are, at once."""
_ALL: Final = np.empty(0, np.uint8)
_SLACK: Final = np.float32(1.00001)
"""Sums of floats come out a little different by their order."""
_SPARSE: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """A partition, with the statistics by which its documents are scored, and those that may be found."""

    partition: Partition
    statistics: Statistics
    see: See

    def hits(self, docs: Words, scores: Floats) -> Hits:
        """Return those documents that may be found."""
        is_seen, rows = self.see(docs)
        items = self.partition.items
        return Hits(rows, scores[is_seen], None if items is None else items[docs[is_seen]])


def find_any(searched: Searched, terms: Sequence[Term], best: Best) -> None:
    """Add the documents that have any of the terms."""
    postings = sum(term.postings.count for term in terms)
    documents = len(searched.partition.lengths)
    if best.most is not None and documents > 2 * _AT_ONCE * _WINDOW and postings > 2 * _WINDOW:
        _find_by_window(searched, terms, best)
    elif postings:
        docs, scores = _score_all(searched, terms)
        keep = scores >= best.least
        best.add(searched.hits(docs[keep], scores[keep]))


def find_every(searched: Searched, terms: Sequence[Term], asked: int, best: Best) -> None:
    """Add the documents that have a term for each of the positions asked for, of which there are so many."""
    found = _having_every(terms, asked)
    scores = _scores_of(searched, terms, found)
    keep = scores >= best.least
    best.add(searched.hits(found[keep], scores[keep]))


def find_phrase(
    searched: Searched, terms: Sequence[Term], asked: int, slop: int, best: Best
) -> None:
    """Add the documents that have the terms in order, with at most ``slop`` words between neighbours."""
    found = _having_every(terms, asked)
    if len(found) and asked > 1:
        found = _in_a_row(_by_position(terms), found, slop)
    scores = _scores_of(searched, terms, found)
    best.add(searched.hits(found, scores))


# --- any ------------------------------------------------------------------------------------------


def _score_all(searched: Searched, terms: Sequence[Term]) -> tuple[Words, Floats]:
    """Return all documents that have a term, ascending, and their scores."""
    statistics, lengths = searched.statistics, searched.partition.lengths
    decoded = [(term, *term.postings.decode()) for term in terms if term.postings.count]
    if not decoded:
        return np.empty(0, np.uint32), np.empty(0, np.float32)
    count = sum(len(docs) for _, docs, _ in decoded)
    if count * _SPARSE < len(lengths):
        found = _union([docs for _, docs, _ in decoded])
        return found, _scores_of(searched, terms, found)
    scores = np.zeros(len(lengths), np.float32)
    for term, docs, frequencies in decoded:
        weight = statistics.idf(term.token)
        add_scores(docs, frequencies, lengths, weight, statistics.average, _ALL, 0, scores)
    found = np.flatnonzero(scores).astype(np.uint32)
    return found, scores[found]


@dataclass(frozen=True, slots=True, eq=False)
class _Windowed:
    """A term, by windows: its blocks ``lows[w]`` to ``highs[w]`` may have documents of window w."""

    term: Term
    weight: float
    lows: Int64Array
    highs: Int64Array
    most: Floats


def _windowed(searched: Searched, term: Term) -> _Windowed:
    statistics, postings = searched.statistics, term.postings
    weight = statistics.idf(term.token)
    firsts = postings.firsts().astype(np.int64)
    bounds = postings.bounds(statistics.average)
    if bounds is None:
        bounds = np.full(len(firsts), 2.2, np.float32)
    starts = np.arange(0, len(searched.partition.lengths), _WINDOW)
    lows = np.maximum(np.searchsorted(firsts, starts, side="right") - 1, 0)
    highs = np.searchsorted(firsts, starts + _WINDOW, side="left")
    ends = np.maximum(highs, lows + 1)
    pairs = np.stack([lows, ends], axis=1).ravel()
    most = np.maximum.reduceat(np.append(bounds, np.float32(0)), pairs)[::2]
    most = np.where(highs > lows, most, np.float32(0)) * np.float32(weight)
    return _Windowed(term, weight, lows, highs, most)


def _find_by_window(searched: Searched, terms: Sequence[Term], best: Best) -> None:
    filled = [term for term in terms if term.postings.count]
    windowed = [_windowed(searched, term) for term in filled]
    most = np.stack([each.most for each in windowed]).sum(axis=0, dtype=np.float32) * _SLACK
    order = np.argsort(-most, kind="stable")
    order = order[most[order] > 0]
    scores = np.zeros(-(-len(searched.partition.lengths) // _WINDOW) * _WINDOW, np.float32)
    at, count = 0, _AT_ONCE
    while at < len(order) and most[order[at]] >= best.least:
        left = int(np.searchsorted(-most[order], -best.least, side="right")) - at
        if at and left > len(order) // _MANY:
            count = left
        if at and _find_by_document(searched, windowed, order[at : at + left], best):
            return
        chosen = np.sort(order[at : at + min(count, left)])
        for each in windowed:
            _add_windows(searched, each, chosen, scores)
        _take_windows(searched, chosen, scores, best)
        at, count = at + count, 4 * count


def _find_by_document(
    searched: Searched, windowed: Sequence[_Windowed], left: Int64Array, best: Best
) -> bool:
    """Look at those documents of windows that have a term which matters; return whether that pays.

    Terms that together give less than the worst score that was found do not matter by themselves.
    """
    ordered = sorted(windowed, key=lambda each: float(each.most.max()))
    reach = np.cumsum([float(each.most.max()) * float(_SLACK) for each in ordered])
    first = int(np.searchsorted(reach, best.least))
    counts = [each.term.postings.count for each in ordered]
    if sum(counts[first:]) * _MANY > sum(counts):
        return False
    docs = _union(
        [np.empty(0, np.uint32), *(each.term.postings.decode()[0] for each in ordered[first:])]
    )
    wanted = np.zeros(len(windowed[0].lows), np.bool_)
    wanted[left] = True
    docs = docs[wanted[docs >> _SHIFT]]
    scores = _scores_of(searched, [each.term for each in windowed], docs)
    keep = scores >= best.least
    best.add(searched.hits(docs[keep], scores[keep]))
    return True


def _add_windows(
    searched: Searched, windowed: _Windowed, chosen: Int64Array, scores: Floats
) -> None:
    """Add to the scores of all documents of windows what a term gives them."""
    lows, highs = windowed.lows[chosen], windowed.highs[chosen]
    is_block = np.zeros(int(highs.max(initial=0)) + 1, np.int32)
    np.add.at(is_block, lows[highs > lows], 1)
    np.add.at(is_block, highs[highs > lows], -1)
    blocks = np.flatnonzero(np.cumsum(is_block) > 0)
    if not len(blocks):
        return
    docs, frequencies = windowed.term.postings.decode(blocks)
    wanted = np.zeros(len(windowed.lows), np.uint8)
    wanted[chosen] = 1
    average, lengths = searched.statistics.average, searched.partition.lengths
    weight = windowed.weight
    add_scores(docs, frequencies, lengths, weight, average, wanted, _SHIFT, scores)


def _take_windows(searched: Searched, chosen: Int64Array, scores: Floats, best: Best) -> None:
    table = scores.reshape(-1, _WINDOW)[chosen]
    least = max(best.least, float(np.finfo(np.float32).tiny))
    rows, columns = np.nonzero(table >= np.float32(least))
    docs = (chosen[rows] * _WINDOW + columns).astype(np.uint32)
    found = table[rows, columns]
    # a few of the best first: of most documents it need not be known whether they may be found
    most = best.most
    if most is not None and len(found) > 16 * (most + 64):
        order = np.argsort(-found, kind="stable")
        first = order[: 4 * (most + 64)]
        best.add(searched.hits(docs[first], found[first]))
        rest = order[4 * (most + 64) :]
        docs, found = docs[rest], found[rest]
        keep = found >= best.least
        docs, found = docs[keep], found[keep]
    best.add(searched.hits(docs, found))


# --- every ----------------------------------------------------------------------------------------


def _having_every(terms: Sequence[Term], asked: int) -> Words:
    """Return the documents that have a term for each position, ascending."""
    groups = _by_position(terms)
    if len(groups) < asked or not asked:
        return np.empty(0, np.uint32)
    by_count = sorted(groups.values(), key=lambda group: sum(each.postings.count for each in group))
    found = _union([each.postings.decode()[0] for each in by_count[0]])
    for group in by_count[1:]:
        if not len(found):
            break
        has = np.zeros(len(found), np.bool_)
        for term in group:
            has |= _lookup(term, found) > 0
        found = found[has]
    return found


def _by_position(terms: Sequence[Term]) -> dict[int, list[Term]]:
    groups: dict[int, list[Term]] = {}
    for term in sorted(terms, key=lambda each: each.position):
        groups.setdefault(term.position, []).append(term)
    return groups


def _lookup(term: Term, docs: Words) -> Words:
    """Return how often documents, which ascend, have a term: 0 if they do not."""
    found = np.zeros(len(docs), np.uint32)
    if term.postings.count and len(docs):
        ends = np.append(np.searchsorted(docs, term.postings.firsts()), len(docs))
        there, frequencies = term.postings.decode(np.flatnonzero(ends[1:] > ends[:-1]))
        find_frequencies(there, frequencies, docs, found)
    return found


def _scores_of(searched: Searched, terms: Sequence[Term], docs: Words) -> Floats:
    """Return the scores of some documents, which ascend."""
    statistics = searched.statistics
    lengths, places = searched.partition.lengths[docs], np.arange(len(docs), dtype=np.uint32)
    scores = np.zeros(len(docs), np.float32)
    for term in terms if len(docs) else ():
        weight, found = statistics.idf(term.token), _lookup(term, docs)
        add_scores(places, found, lengths, weight, statistics.average, _ALL, 0, scores)
    return scores


def _union(found: Sequence[Words]) -> Words:
    """Return the documents of posting lists, ascending."""
    return found[0] if len(found) == 1 else _distinct(np.sort(np.concatenate(found)))


def _distinct(numbers: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Return numbers that ascend without repeats."""
    is_new = np.ones(len(numbers), np.bool_)
    is_new[1:] = numbers[1:] != numbers[:-1]
    return numbers[is_new]


# --- in a row -------------------------------------------------------------------------------------


def _in_a_row(groups: Mapping[int, Sequence[Term]], docs: Words, slop: int) -> Words:
    """Return the documents that have terms behind one another, each of them at most so far away.

    A place is a number with the document above and the position below; of each position of the
    query those are kept that a place of the one before leads to.
    """
    (before, first), *rest = groups.items()
    reached = _places_of(first, docs)
    for position, terms in rest:
        here = _places_of(terms, docs)
        step = np.uint64(position - before)
        back = here - np.minimum(step, here)
        at = np.searchsorted(reached, back, side="right") - 1
        is_behind = (at >= 0) & ((here & np.uint64(0xFFFFFFFF)) >= step)
        if len(reached):
            is_behind &= back - np.minimum(reached[np.maximum(at, 0)], back) <= np.uint64(slop)
        reached, before = here[is_behind], position
    return _distinct(reached >> np.uint64(32)).astype(np.uint32)


def _places_of(terms: Sequence[Term], docs: Words) -> Numbers:
    return np.sort(np.concatenate([_places_of_term(term, docs) for term in terms]))


def _places_of_term(term: Term, docs: Words) -> Numbers:
    places = term.postings.places()
    if places is None:
        return np.empty(0, np.uint64)
    have, _ = term.postings.decode()
    at = np.flatnonzero(np.isin(have, docs, assume_unique=True))
    counts = places.ends[at + 1] - places.ends[at]
    values = places.values[_ranges(places, at, counts)].astype(np.uint64)
    keys: Numbers = np.repeat(have[at].astype(np.uint64) << np.uint64(32), counts) | values
    return keys


def _ranges(places: Places, at: Int64Array, counts: Int64Array) -> Int64Array:
    starts = places.ends[at] - (np.cumsum(counts) - counts)
    found: Int64Array = np.arange(int(counts.sum())) + np.repeat(starts, counts)
    return found
