"""Documents that fit a query, and how well: sets of rows with scores, and the best of them.

Rows are named by their addresses; a document that is one item of a row's list has its place there, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pennon.core.fast_dataclass import dataclass
from pennon.index.row_set import Numbers
from pennon.index.text.arrays import Floats, Words

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Documents and their scores, each document once, in any order."""

    rows: Numbers
    scores: Floats
    items: Words | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, places: Places | npt.NDArray[np.bool_] | slice) -> Hits:
        """Return some of them."""
        items = None if self.items is None else self.items[places]
        return Hits(self.rows[places], self.scores[places], items)

    def scaled(self, factor: float) -> Hits:
        """Return the same with other scores."""
        return (
            self if factor == 1 else Hits(self.rows, self.scores * np.float32(factor), self.items)
        )

    def best(self, most: int | None = None) -> Hits:
        """Return them best first, those of equal scores by row; no more than ``most``."""
        chosen = self
        if most is not None and len(self) > 4 * most + 64:
            least = (
                np.partition(self.scores, len(self) - most)[len(self) - most] if most else np.inf
            )
            chosen = self.at(self.scores >= least)
        keys: list[npt.NDArray[Any]] = [chosen.rows, -chosen.scores]
        if chosen.items is not None:
            keys.insert(0, chosen.items)
        return chosen.at(np.lexsort(keys)[:most])

    def distinct(self) -> Hits:
        """Return each document once, at its first place: a damaged index may name a row twice."""
        keys, _ = _keys(self, NOTHING)
        ordered = np.sort(keys)
        if not (ordered[1:] == ordered[:-1]).any():
            return self
        _, firsts = np.unique(keys, return_index=True)
        return self.at(np.sort(firsts))


NOTHING: Final = Hits(np.empty(0, np.uint64), np.empty(0, np.float32))
"""No document."""


def together(found: Sequence[Hits]) -> Hits:
    """Return the hits of several partitions; no document is in two of them."""
    filled = [each for each in found if len(each)]
    if len(filled) < 2:
        return filled[0] if filled else NOTHING
    items = None
    if any(each.items is not None for each in filled):
        items = np.concatenate([_items(each) for each in filled])
    return Hits(
        np.concatenate([each.rows for each in filled]),
        np.concatenate([each.scores for each in filled]),
        items,
    )


def summed(found: Sequence[Hits]) -> Hits:
    """Return the documents of any, with the sums of their scores."""
    return _merged(found, np.add)


def greatest(found: Sequence[Hits]) -> Hits:
    """Return the documents of any, with the greatest of their scores."""
    return _merged(found, np.maximum)


def among(hits: Hits, others: Hits) -> tuple[npt.NDArray[np.bool_], Places]:
    """Return which documents are among others, and where: of those that are not, anywhere."""
    if not len(others):
        return np.zeros(len(hits), np.bool_), np.zeros(len(hits), np.int64)
    mine, theirs = _keys(hits, others)
    order = np.argsort(theirs)
    at = np.minimum(np.searchsorted(theirs, mine, sorter=order), len(theirs) - 1)
    places = order[at]
    return theirs[places] == mine, places


def _merged(found: Sequence[Hits], ufunc: np.ufunc) -> Hits:
    filled = [each for each in found if len(each)]
    merged = filled[0] if filled else NOTHING
    for more in filled[1:]:
        is_known, places = among(more, merged)
        scores = merged.scores.copy()
        scores[places[is_known]] = ufunc(scores[places[is_known]], more.scores[is_known])
        merged = together([Hits(merged.rows, scores, merged.items), more.at(~is_known)])
    return merged


def _items(hits: Hits) -> Words:
    return np.zeros(len(hits), np.uint32) if hits.items is None else hits.items


def _keys(one: Hits, other: Hits) -> tuple[Numbers, Numbers]:
    """Return numbers that are equal just where documents are."""
    if one.items is None and other.items is None:
        return one.rows, other.rows
    _, ranks = np.unique(np.concatenate([one.rows, other.rows]), return_inverse=True)
    keys = ranks.astype(np.uint64) << np.uint64(32) | np.concatenate([_items(one), _items(other)])
    return keys[: len(one)], keys[len(one) :]


class Best:
    """The best documents so far, and the score below which no other one matters; ``given`` are all that came."""

    def __init__(self, most: int | None) -> None:
        """Keep so many; all, if there is no bound."""
        self.most = most
        self._held: list[Hits] = []
        self._rows = 0
        self._is_sorted = False
        self.given = 0
        self.least = -np.inf

    def add(self, hits: Hits) -> None:
        """Add hits that were not added before."""
        if not len(hits):
            return
        self._held.append(hits)
        self._rows += len(hits)
        self._is_sorted = False
        self.given += len(hits)
        if self.most is not None and self._rows >= self.most:
            held = together(self._held).best(self.most)
            self._held, self._rows, self._is_sorted = [held], len(held), True
            self.least = float(held.scores[-1]) if self.most else np.inf

    def found(self) -> Hits:
        """Return the best, best first."""
        return self._held[0] if self._is_sorted else together(self._held).best(self.most)
