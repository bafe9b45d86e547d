"""The best documents of a partition are those that scoring all of them finds."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from pennon.index.row_set import Numbers
from pennon.index.text.arrays import Words
from pennon.index.text.bm25 import Statistics, share
from pennon.index.text.documents import Document
from pennon.index.text.hits import Best, Hits, among, greatest, summed
from pennon.index.text.matching import Searched, Seen, find_any, find_every, find_phrase
from pennon.index.text.memory_partition import MemoryPartition
from pennon.index.text.postings import Postings, Scored
from pennon.index.text.terms import Term
from tests.unit.index.text.packing import postings

DOCUMENTS = 90_000


class Partition:
    """Documents of random lengths; row ids are their numbers times 10, in order or not."""

    items = None
    token_count = 0

    def __init__(self, lengths: Words, *, in_order: bool) -> None:
        self.lengths = lengths
        self.row_ids = np.arange(len(lengths), dtype=np.uint64) * np.uint64(10)
        if not in_order:
            self.row_ids = self.row_ids[::-1].copy()

    def scored(self, number: int, held: Postings, average: float) -> Scored:
        return Scored.of(held, self.lengths, average)


def a_term(token: str, rng: random.Random, share: float) -> Term:
    docs = sorted(rng.sample(range(DOCUMENTS), int(share * DOCUMENTS)))
    # some places have more of the token than others
    counts = [1 + (rng.random() < 0.3) + 8 * (d // 4096 == 7 and rng.random() < 0.1) for d in docs]
    return Term(token, len(token), 0, postings(docs, counts, documents=DOCUMENTS))


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("hides", [True, False])
@pytest.mark.parametrize("is_known", [True, False])
def test_the_best_of_any(*, in_order: bool, hides: bool, is_known: bool) -> None:
    rng = random.Random(3)
    lengths = np.array([rng.randrange(4, 40) for _ in range(DOCUMENTS)], np.uint32)
    shares = {"fox": 0.4, "quick": 0.2, "brown": 0.02, "rare": 0.001}
    terms = [a_term(token, rng, share) for token, share in shares.items()]
    having = {term.token: term.postings.count for term in terms}
    statistics = Statistics(DOCUMENTS, int(lengths.sum()), having)
    partition = Partition(lengths, in_order=in_order)
    hidden = np.zeros(DOCUMENTS, np.bool_)
    hidden[::3] = hides

    def see(docs: Words) -> tuple[np.ndarray, np.ndarray]:
        return ~hidden[docs], partition.row_ids[docs[~hidden[docs]]]

    def seen() -> Seen:
        return Seen.of(*see(np.arange(DOCUMENTS, dtype=np.uint32)))

    searched = Searched(partition, statistics, see, seen, is_known)  # type: ignore[arg-type]
    for chosen in (terms, terms[:2], terms[:1], terms[2:], terms[3:]):
        everything = Best(None)
        find_any(searched, chosen, everything)
        expected = everything.found()
        assert len(expected) >= 60
        assert expected.scores.tolist() == pytest.approx(
            scores_of(chosen, lengths, statistics, expected.rows, partition.row_ids), rel=1e-6
        )
        for most in (1, 10, 300):
            best = Best(most)
            find_any(searched, chosen, best)
            assert best.found().rows.tolist() == expected.rows[:most].tolist()
            np.testing.assert_array_equal(best.found().scores, expected.scores[:most])


def scores_of(
    terms: Sequence[Term], lengths: Words, statistics: Statistics, rows: Numbers, row_ids: Numbers
) -> list[float]:
    """Return the scores of rows, by the formula."""
    whole = np.zeros(DOCUMENTS)
    for term in terms:
        docs, often = term.postings.decode()
        shares = share(
            often.astype(np.float32), lengths[docs].astype(np.float32), statistics.average
        )
        whole[docs] += statistics.idf(term.token) * shares
    order = np.argsort(row_ids)
    found: list[float] = whole[order[np.searchsorted(row_ids, rows, sorter=order)]].tolist()
    return found


def in_memory(texts: Sequence[str]) -> Searched:
    partition = MemoryPartition()
    for row, text in enumerate(texts):
        tokens = [(token, at) for at, token in enumerate(text.split())]
        partition.add(row, Document(row, 0, tokens))
    statistics = Statistics(len(texts), partition.token_count, {})

    def see(docs: Words) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(len(docs), np.bool_), partition.row_ids[docs]

    def seen() -> Seen:
        return Seen.of(*see(np.arange(len(texts), dtype=np.uint32)))

    return Searched(partition, statistics, see, seen)


def terms_of(searched: Searched, words: Sequence[str]) -> list[Term]:
    tokens = searched.partition.tokens
    numbers = [(word, at, tokens.find(word)) for at, word in enumerate(words)]
    return [
        Term(word, at, number, searched.partition.postings([number], places=True)[0])
        for word, at, number in numbers
        if number is not None
    ]


def gaps_fit(text: Sequence[str], words: Sequence[str], slop: int) -> bool:
    """Return whether words stand in order, with no more than so many others between neighbours."""
    reached = {at for at, word in enumerate(text) if word == words[0]}
    for word in words[1:]:
        here = {at for at, each in enumerate(text) if each == word}
        reached = {at for at in here if any(0 <= at - 1 - before <= slop for before in reached)}
    return bool(reached)


def test_phrases_and_all_words() -> None:
    rng = random.Random(5)
    texts = [" ".join(rng.choices("abcde", k=rng.randrange(1, 12))) for _ in range(300)]
    searched = in_memory(texts)
    for _ in range(60):
        words, slop = rng.choices("abcde", k=rng.randrange(1, 4)), rng.randrange(3)
        terms = terms_of(searched, words)
        best = Best(None)
        find_phrase(searched, terms, len(words), slop, best)
        expected = [at for at, each in enumerate(texts) if gaps_fit(each.split(), words, slop)]
        assert sorted(best.found().rows.tolist()) == expected, (words, slop)
        best = Best(None)
        find_every(searched, terms, len(words), best)
        expected = [at for at, each in enumerate(texts) if {*words} <= {*each.split()}]
        assert sorted(best.found().rows.tolist()) == expected


def hits(*pairs: tuple[int, float]) -> Hits:
    rows, scores = zip(*pairs, strict=True) if pairs else ((), ())
    return Hits(np.array(rows, np.uint64), np.array(scores, np.float32))


def test_hits_are_summed_and_intersected() -> None:
    one, other = hits((5, 1.0), (2, 3.0)), hits((2, 0.5), (9, 2.0))
    assert summed([one, other]).best().rows.tolist() == [2, 9, 5]
    assert summed([one, other]).best().scores.tolist() == [3.5, 2.0, 1.0]
    assert greatest([one, other, hits()]).best(2).scores.tolist() == [3.0, 2.0]
    is_in, places = among(one, other)
    assert is_in.tolist() == [False, True]
    assert places[1] == 0
    assert not among(one, hits())[0].any()


def test_documents_of_equal_scores_are_ordered_by_row() -> None:
    best = Best(2)
    best.add(hits((7, 1.0), (3, 1.0)))
    best.add(hits((1, 1.0), (4, 1.0)))
    assert best.found().rows.tolist() == [1, 3]
