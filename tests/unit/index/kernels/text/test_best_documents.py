"""Documents that have any of some tokens, or all of them, or all in a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pennon.index.kernels.text import best_documents

DOCUMENTS = 30_000
NONE = np.empty(0, np.uint8)
score_any: Any = best_documents.score_any
score_every: Any = best_documents.score_every
ROOM = 1 << 12


class Lists:
    """Random posting lists."""

    def __init__(self, shares: list[float], seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.docs = [
            np.sort(rng.choice(DOCUMENTS, int(DOCUMENTS * each), replace=False)).astype(np.uint32)
            for each in shares
        ]
        # few values: many documents have equal scores
        self.shares = [rng.integers(1, 9, len(each)).astype(np.float32) / 8 for each in self.docs]
        self.tops = [
            np.maximum.reduceat(each, np.arange(0, len(each), 128)) for each in self.shares
        ]
        self.weights = np.array([1 / (0.1 + each) for each in shares], np.float32)

    @property
    def given(self) -> tuple[list[Any], list[Any], list[Any], Any]:
        """Return the arrays as kernels take them."""
        return self.docs, self.shares, self.tops, self.weights

    def bits(self, of: list[int]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return the bits of some lists, and how many come before every 256th; empty arrays of the others."""
        bits = [np.empty(0, np.uint64) for _ in self.docs]
        ranks = [np.empty(0, np.uint32) for _ in self.docs]
        for number in of:
            has = np.isin(np.arange(-(-DOCUMENTS // 256) * 256), self.docs[number])
            bits[number] = np.packbits(has, bitorder="little").view(np.uint64)
            before = np.arange(0, len(has), 256)
            ranks[number] = np.searchsorted(self.docs[number], before).astype(np.uint32)
        return bits, ranks

    def scores(self) -> np.ndarray:
        """Return the score of every document."""
        found = np.zeros(DOCUMENTS, np.float32)
        for docs, shares, weight in zip(self.docs, self.shares, self.weights, strict=True):
            found[docs] += weight * shares
        return found

    def best(
        self, most: int, seen: np.ndarray, *, first_wins: bool, beside: int = 0, factor: float = 1
    ) -> dict[int, float]:
        """Return what the kernel finds."""
        heap = np.full(most, -np.inf, np.float32)
        docs, scores = np.empty(ROOM, np.uint32), np.empty(ROOM, np.float32)
        found: dict[int, float] = {}
        start = 0
        while start < DOCUMENTS:
            given = *self.given, start, DOCUMENTS, -np.inf, seen, heap, first_wins, docs, scores
            start, filled = score_any(*given, beside, factor)
            mine = dict(zip(docs[:filled].tolist(), scores[:filled].tolist(), strict=True))
            assert not mine.keys() & found.keys()
            found |= mine
        return found


@pytest.mark.parametrize("shares", [[0.3], [0.3, 0.2], [0.4, 0.01], [0.5, 0.2, 0.05, 0.001]])
@pytest.mark.parametrize("first_wins", [True, False])
@pytest.mark.parametrize("hides", [True, False])
def test_best_documents_of_any_token_equal_full_scoring(
    shares: list[float], *, first_wins: bool, hides: bool
) -> None:
    lists = Lists(shares)
    scores = lists.scores()
    seen = np.ones(DOCUMENTS, np.uint8)
    if hides:
        seen[scores > np.sort(scores)[-50]] = 0
    visible = scores * seen
    for most in (1, 7, 100):
        found = lists.best(most, seen if hides else NONE, first_wins=first_wins)
        assert found == {each: pytest.approx(visible[each]) for each in found}
        order = np.argsort(-visible, kind="stable")[:most]
        assert {*order.tolist()} <= found.keys()
        if not first_wins:
            ties = np.flatnonzero(visible == visible[order[-1]])
            assert {*ties.tolist()} <= found.keys()
    assert lists.best(0, NONE, first_wins=first_wins).keys() == {*np.flatnonzero(scores).tolist()}


@pytest.mark.parametrize("factor", [1.0, 0.5, -0.3, -2.0])
@pytest.mark.parametrize("shares", [[0.2, 0.3], [0.3, 0.02, 0.5], [0.01, 0.2, 0.1, 0.4]])
def test_lists_beside_change_scores_and_add_no_documents(
    shares: list[float], factor: float
) -> None:
    lists = Lists(shares)
    found = np.full(DOCUMENTS, -np.inf, np.float32)
    found[np.concatenate(lists.docs[:-1])] = 0
    other = np.zeros(DOCUMENTS, np.float32)
    for number, (docs, share) in enumerate(zip(lists.docs, lists.shares, strict=True)):
        is_beside = number == len(shares) - 1
        (other if is_beside else found)[docs] += lists.weights[number] * share
    whole = found + np.float32(factor) * other
    everything = lists.best(0, NONE, first_wins=False, beside=1, factor=factor)
    assert everything.keys() == {*np.flatnonzero(found >= 0).tolist()}
    assert everything == {each: whole[each] for each in everything}
    for most in (1, 20):
        best = lists.best(most, NONE, first_wins=True, beside=1, factor=factor)
        order = np.argsort(-whole, kind="stable")[:most]
        assert {*order.tolist()} <= best.keys()
        assert best == {each: whole[each] for each in best}
    with pytest.raises(ValueError, match="no list has documents"):
        lists.best(1, NONE, first_wins=True, beside=len(shares))


@pytest.mark.parametrize("with_bits", [[], [0], [2], [0, 1, 2]], ids=str)
def test_documents_with_every_token_equal_full_scoring(with_bits: list[int]) -> None:
    lists = Lists([0.3, 0.2, 0.5])
    members = lists.bits(with_bits)
    docs, scores = np.empty(DOCUMENTS, np.uint32), np.empty(DOCUMENTS, np.float32)
    given = lists.given
    no_limit = np.empty(0, np.float32), False
    no_steps: tuple[list[Any], list[Any], Any, int] = [], [], np.empty(0, np.int64), 0
    filled = score_every(
        *given, DOCUMENTS, -np.inf, NONE, *no_limit, *no_steps, docs, scores, *members
    )
    every = set.intersection(*({*each.tolist()} for each in lists.docs))
    assert docs[:filled].tolist() == sorted(every)
    np.testing.assert_allclose(scores[:filled], lists.scores()[docs[:filled]], rtol=1e-6)
    seen = np.ones(DOCUMENTS, np.uint8)
    seen[::2] = 0
    filled = score_every(*given, DOCUMENTS, 2.5, seen, *no_limit, *no_steps, docs, scores, *members)
    assert docs[:filled].tolist() == [
        each for each in sorted(every) if each % 2 and lists.scores()[each] >= 2.5
    ]
    whole = np.where(np.isin(np.arange(DOCUMENTS), sorted(every)), lists.scores(), 0)
    for first_wins in (True, False):
        heap = np.full(20, -np.inf, np.float32)
        limit = heap, first_wins
        filled = score_every(
            *given, DOCUMENTS, -np.inf, NONE, *limit, *no_steps, docs, scores, *members
        )
        best = np.argsort(-whole, kind="stable")[:20]
        assert {*best.tolist()} <= {*docs[:filled].tolist()}
        assert filled < len(every) / 2


def words(*values: int) -> np.ndarray:
    return np.array(values, np.uint32)


def test_best_documents_refuse_arrays_that_do_not_fit() -> None:
    docs, one, two = words(1, 5), np.ones(1, np.float32), np.ones(2, np.float32)
    heap, out, few = np.empty(0, np.float32), np.empty(ROOM, np.uint32), np.empty(9, np.float32)
    room = np.empty(ROOM, np.float32)

    def any_of(docs: list[np.ndarray], shares: list[np.ndarray], tops: list[np.ndarray]) -> None:
        score_any(docs, shares, tops, one, 0, 9, 0.0, NONE, heap, True, out, room)  # noqa: FBT003

    any_of([docs], [two], [one])
    for shares, tops in (([one], [one]), ([two], [two]), ([], [one]), ([two], [])):
        with pytest.raises(ValueError, match="differ in number"):
            any_of([docs], shares, tops)
    few_seen = np.ones(3, np.uint8)
    with pytest.raises(ValueError, match="no such documents"):
        score_any([docs], [two], [one], one, 0, 9, 0.0, few_seen, heap, True, out, room)  # noqa: FBT003
    with pytest.raises(ValueError, match="no room"):
        score_any([docs], [two], [one], one, 0, 9, 0.0, NONE, heap, True, out, few)  # noqa: FBT003
    steps = np.zeros(1, np.int64)
    few_bits = [np.zeros(1, np.uint64)], [np.zeros(1, np.uint32)]

    def in_a_row(ends: np.ndarray, places: np.ndarray, out: np.ndarray) -> int:
        lists = [docs], [two], [one], one
        limits = 9, 0.0, NONE, heap, False
        return score_every(
            *lists, *limits, [ends], [places], steps, 0, out, room[: len(out)], *few_bits
        )

    ends = np.array([0, 1, 3], np.int64)
    assert in_a_row(ends, words(4, 5, 6), np.empty(2, np.uint32)) == 2
    for bad in (ends[:2], ends - 1, np.array([0, 3, 1], np.int64), ends + 1):
        with pytest.raises(ValueError, match="positions"):
            in_a_row(bad, words(4, 5, 6), np.empty(2, np.uint32))
    with pytest.raises(ValueError, match="no room"):
        in_a_row(ends, words(4, 5, 6), np.empty(1, np.uint32))
    for bits, ranks in (
        ([], []),
        ([np.zeros(1, np.uint64)], [np.empty(0, np.uint32)]),
        ([np.zeros(1, np.uint64)], []),
    ):
        few_bits = bits, ranks
        with pytest.raises(ValueError, match="bits"):
            in_a_row(ends, words(4, 5, 6), np.empty(2, np.uint32))


def test_best_documents_with_wrong_bits_match_no_documents() -> None:
    lists = Lists([0.1, 0.4])
    limit = np.empty(0, np.float32), False
    no_steps: tuple[list[Any], list[Any], Any, int] = [], [], np.empty(0, np.int64), 0
    docs, scores = np.empty(DOCUMENTS, np.uint32), np.empty(DOCUMENTS, np.float32)
    words_ = np.full(-(-DOCUMENTS // 64), (1 << 64) - 1, np.uint64)
    members = [words_, words_], [np.full(len(words_), 1 << 31, np.uint32)] * 2
    filled = score_every(
        *lists.given, DOCUMENTS, -np.inf, NONE, *limit, *no_steps, docs, scores, *members
    )
    assert filled == 0
