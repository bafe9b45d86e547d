"""Scoring the documents of a partition: those that have any token of a query, all, or all in a row.

What a token contributes to each of its documents is remembered, and the most of each 128 of these.  Windows of
documents are scored one after the other; those that give no document as much as the worst of the best so far
are left out::

    documents      0        W        2W       3W       4W            windows of W documents
    fox            |   1.2  |  0.9   |   -    |  1.3   |             most that it contributes there
    quick          |   -    |  2.0   |  1.9   |   -    |
    together           1.2     2.9      1.9      1.3
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.runs import distinct
from pennon.index.kernels.text.best_documents import score_any, score_every
from pennon.index.kernels.text.postings import add_scores, find_frequencies
from pennon.index.row_set import Numbers
from pennon.index.text.arrays import Bytes, Floats, Words
from pennon.index.text.bm25 import Statistics
from pennon.index.text.hits import Best, Hits
from pennon.index.text.partition import Partition
from pennon.index.text.postings import NO_MEMBERS, Members, Places
from pennon.index.text.terms import Term

See: TypeAlias = Callable[[Words], tuple[npt.NDArray[np.bool_], Numbers]]
"""Of some documents: which of them may be found, and the addresses of these."""

_WINDOW: Final = 1 << 11
_ROOM: Final = 1 << 15
_ALL: Final = np.empty(0, np.uint8)
_NO_SCORE: Final = np.empty(0, np.float32)
_FEW: Final = 4
"""Where fewer than one of so many documents has a token, it is asked of these alone whether they may be found."""


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The documents of a partition that may be found: those whose mask is not 0, or all if it is empty.

    ``by_row``: documents are in the order of their rows, so that of equal ones the first is better.
    ``is_plain``: those that may be found have the addresses that the partition names.
    """

    mask: Bytes
    by_row: bool
    is_plain: bool = False

    @classmethod
    def of(
        cls, is_seen: npt.NDArray[np.bool_], rows: Numbers, named: Numbers | None = None
    ) -> Seen:
        """Return the answer of `See` for all documents; ``named`` are the rows that the partition names."""
        is_all = bool(is_seen.all())
        mask = _ALL if is_all else is_seen.view(np.uint8)
        is_plain = named is not None and np.array_equal(rows, named if is_all else named[is_seen])
        return cls(mask, bool((rows[1:] > rows[:-1]).all()), is_plain)


_UNKNOWN: Final = Seen(_ALL, by_row=False)


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """A partition, with the statistics by which its documents are scored, and those that may be found.

    ``seen`` says which these are, at once where ``is_known``.
    """

    partition: Partition
    statistics: Statistics
    see: See
    seen: Callable[[], Seen]
    is_known: bool = True

    def hits(self, docs: Words, scores: Floats) -> Hits:
        """Return those documents that may be found."""
        is_seen, rows = self.see(docs)
        items = self.partition.items
        return Hits(rows, scores[is_seen], None if items is None else items[docs[is_seen]])

    def plain_hits(self, docs: Words, scores: Floats) -> Hits:
        """Return documents that may be found, by the addresses that the partition names."""
        items = self.partition.items
        return Hits(self.partition.row_ids[docs], scores, None if items is None else items[docs])


class _Found:
    """The best documents of a partition."""

    def __init__(self, searched: Searched, best: Best, *, is_masked: bool) -> None:
        self.seen = searched.seen() if is_masked else _UNKNOWN
        self._searched, self._best = searched, best
        self._is_masked = is_masked
        self.least = best.least
        most = best.most if is_masked else None
        self.heap = _NO_SCORE if most is None else np.full(most, -np.inf, np.float32)
        self._held: list[tuple[Words, Floats]] = []

    @property
    def is_whole(self) -> bool:
        """Return whether all documents may be found."""
        return self._is_masked and not len(self.seen.mask)

    def add(self, docs: Words, scores: Floats) -> None:
        """Take documents, which come in order, and are among those that may be found if these are known."""
        if not self._is_masked:
            keep = scores >= self._best.least
            self._best.add(self._searched.hits(docs[keep], scores[keep]))
            self.least = self._best.least
            return
        if len(docs):
            # the kernel found the best so far; others that it found were better than those before them
            keep = scores >= self.heap[0]
            self._held.append((docs[keep], scores[keep]))

    def finish(self) -> None:
        """Give what was found to the best."""
        if not self._held:
            return
        docs, scores = self._held[-1]
        if len(self._held) > 1:
            docs = np.concatenate([each for each, _ in self._held])
            scores = np.concatenate([each for _, each in self._held])
            keep = scores >= self.heap[0]
            docs, scores = docs[keep], scores[keep]
        searched = self._searched
        hits = searched.plain_hits if self.seen.is_plain else searched.hits
        self._best.add(hits(docs, scores))


@dataclass(frozen=True, slots=True, eq=False)
class _Lists:
    """The posting lists of terms as kernels take them."""

    docs: list[Words]
    shares: list[Floats]
    tops: list[Floats]
    weights: Floats
    best: list[Floats]

    def least(self, terms: int, most: int | None) -> float:
        """Return a score that so many documents have: by one of the first terms alone."""
        if not most:
            return -np.inf
        known = [
            float(weight * best[most - 1])
            for weight, best in zip(self.weights[:terms], self.best, strict=False)
            if len(best) >= most
        ]
        return max(known, default=-np.inf)

    @classmethod
    def of(cls, searched: Searched, terms: Sequence[Term]) -> _Lists:
        statistics, partition = searched.statistics, searched.partition
        found = [partition.scored(term.number, term.postings, statistics.average) for term in terms]
        return cls(
            [each.docs for each in found],
            [each.shares for each in found],
            [each.tops for each in found],
            np.array([statistics.idf(term.token) for term in terms], np.float32),
            [each.best for each in found],
        )


def find_any(
    searched: Searched,
    terms: Sequence[Term],
    best: Best,
    beside: Sequence[Term] = (),
    factor: float = 1.0,
) -> None:
    """Add the documents that have any of the terms.

    What terms ``beside`` these give to a document is added to its score, so many times.
    """
    if best.most == 0:
        return
    lists = _Lists.of(searched, [*terms, *beside])
    documents = len(searched.partition.lengths)
    count = sum(map(len, lists.docs[: len(terms)]))
    is_masked = best.most is not None and (searched.is_known or count * _FEW > documents)
    found = _Found(searched, best, is_masked=is_masked)
    is_raised = found.is_whole and factor >= 0
    known = lists.least(len(terms), best.most) if is_raised else -np.inf
    room = min(documents, count) + _WINDOW
    room = room if best.most is None else min(room, _ROOM)
    docs, scores = np.empty(room, np.uint32), np.empty(room, np.float32)
    start = 0
    while start < documents:
        start, filled = score_any(
            lists.docs,
            lists.shares,
            lists.tops,
            lists.weights,
            start,
            documents,
            max(found.least, known),
            found.seen.mask,
            found.heap,
            found.seen.by_row,
            docs,
            scores,
            len(beside),
            factor,
        )
        found.add(docs[:filled], scores[:filled])
    found.finish()


def find_every(searched: Searched, terms: Sequence[Term], asked: int, best: Best) -> None:
    """Add the documents that have a term for each of the given number of positions."""
    _find_every(searched, terms, asked, best, None)


def find_phrase(
    searched: Searched, terms: Sequence[Term], asked: int, slop: int, best: Best
) -> None:
    """Add the documents that have the terms in order, with at most ``slop`` words between neighbours."""
    _find_every(searched, terms, asked, best, slop if asked > 1 else None)


def _find_every(
    searched: Searched, terms: Sequence[Term], asked: int, best: Best, slop: int | None
) -> None:
    groups = _by_position(terms)
    if len(groups) < asked or not asked or best.most == 0:
        return
    if len(groups) < len(terms):
        found = _having_every(groups)
        if slop is not None and len(found):
            found = _in_a_row(groups, found, slop)
        best.add(searched.hits(found, _scores_of(searched, terms, found)))
        return
    partition = searched.partition
    placed = [] if slop is None else [partition.placed(t.number, t.postings) for t in terms]
    if any(each is None for each in placed):
        return
    lists = _Lists.of(searched, terms)
    members = _members_of(partition, terms, lists.docs)
    kept = _Found(searched, best, is_masked=searched.is_known and best.most is not None)
    room = min(map(len, lists.docs))
    docs, scores = np.empty(room, np.uint32), np.empty(room, np.float32)
    filled = score_every(
        lists.docs,
        lists.shares,
        lists.tops,
        lists.weights,
        len(partition.lengths),
        kept.least,
        kept.seen.mask,
        kept.heap,
        kept.seen.by_row,
        [each.ends for each in placed if each is not None],
        [each.values for each in placed if each is not None],
        np.diff([0, *(term.position for term in terms)]).astype(np.int64),
        slop or 0,
        docs,
        scores,
        [each.bits for each in members],
        [each.ranks for each in members],
    )
    kept.add(docs[:filled], scores[:filled])
    kept.finish()


def _members_of(
    partition: Partition, terms: Sequence[Term], docs: Sequence[Words]
) -> list[Members]:
    """Return which documents have each of the terms, but for the rarest: its documents are looked at one by one."""
    sizes = [len(each) for each in docs]
    rarest = sizes.index(min(sizes))
    return [
        NO_MEMBERS if at == rarest else partition.members(term.number, mine)
        for at, (term, mine) in enumerate(zip(terms, docs, strict=True))
    ]


# --- terms that are alternatives ------------------------------------------------------------------


def _having_every(groups: Mapping[int, Sequence[Term]]) -> Words:
    """Return the documents that have a term for each position, ascending."""
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
        add_scores(places, found, lengths, weight, statistics.average, scores)
    return scores


def _union(found: Sequence[Words]) -> Words:
    """Return the documents of posting lists, ascending."""
    return found[0] if len(found) == 1 else distinct(np.concatenate(found))


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
    return distinct(reached >> np.uint64(32)).astype(np.uint32)


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
