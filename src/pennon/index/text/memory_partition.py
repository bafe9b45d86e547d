"""A partition that is made of texts: of rows that no index covers, or to be written.

Tokens get their numbers in the order in which they are first seen.  Each place of a token is three numbers: the
token's, the document's, the position's.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

import numpy as np

from pennon.core.runs import run_starts
from pennon.index.row_set import Numbers
from pennon.index.text.arrays import Words
from pennon.index.text.documents import Document
from pennon.index.text.partition import WholeLists
from pennon.index.text.postings import Places, Postings, RowPostings, Scored, TokenLists
from pennon.index.text.token_set import Edits

_ENTRY_BYTES: Final = 120
"""What a token takes in the table of tokens, about."""


class MemoryTokens:
    """The tokens of texts."""

    def __init__(self, numbers: dict[str, int]) -> None:
        """Share a table that may still grow."""
        self.numbers = numbers

    @property
    def size_bytes(self) -> int:
        """See `TokenSet.size_bytes`."""
        return _ENTRY_BYTES * len(self.numbers)

    def find(self, token: str) -> int | None:
        """See `TokenSet.find`."""
        return self.numbers.get(token)

    def items(self) -> Iterator[tuple[bytes, int]]:
        """See `TokenSet.items`."""
        return (
            (each.encode("utf-8", "surrogatepass"), self.numbers[each]) for each in self.in_order()
        )

    def near(self, token: str, distance: int, prefix: int, most: int) -> Iterator[tuple[str, int]]:
        """See `TokenSet.near`."""
        edits = Edits(token, distance, prefix)
        for each in self.in_order():
            if abs(len(each) - len(token)) > distance:
                continue
            if edits.near(each):
                if not most:
                    return
                most -= 1
                yield each, self.numbers[each]

    def in_order(self) -> list[str]:
        """Return the tokens, by their bytes."""
        return sorted(self.numbers, key=lambda each: each.encode("utf-8", "surrogatepass"))


class _Numbers(dict[str, int]):
    """The numbers of tokens: one that is new gets the next."""

    __slots__ = ()

    def __missing__(self, token: str) -> int:
        number = self[token] = len(self)
        return number


class MemoryPartition(WholeLists):
    """Documents and their tokens, in memory."""

    def __init__(self) -> None:
        """Begin with none."""
        self._numbers = _Numbers()
        self._tokens, self._positions = array("I"), array("I")
        self._lengths, self._rows, self._items = array("I"), array("Q"), array("I")
        self._sorted: tuple[Words, Words, Words] | None = None
        self._by_item = False

    def add(self, row_id: int, document: Document) -> None:
        """Add a document of a row."""
        numbers, tokens = self._numbers, document.tokens
        self._tokens.extend([numbers[token] for token, _ in tokens])
        self._positions.extend([position for _, position in tokens])
        self._lengths.append(len(tokens))
        self._rows.append(row_id)
        self._items.append(document.item)
        self._by_item = self._by_item or document.item > 0
        self._sorted = None

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def places(self) -> int:
        """Return how many places of tokens there are."""
        return len(self._tokens)

    @property
    def row_ids(self) -> Numbers:
        """See `Partition.row_ids`."""
        return np.array(self._rows, np.uint64)

    @property
    def lengths(self) -> Words:
        """See `Partition.lengths`."""
        return np.array(self._lengths, np.uint32)

    @property
    def items(self) -> Words:
        """Return the place of each document in its row's list."""
        return np.array(self._items, np.uint32)

    @property
    def tokens(self) -> MemoryTokens:
        """See `Partition.tokens`."""
        return MemoryTokens(self._numbers)

    @property
    def token_count(self) -> int:
        """See `Partition.token_count`."""
        return len(self._tokens)

    @property
    def size_bytes(self) -> int:
        """See `Partition.size_bytes`."""
        words = len(self._tokens) * 2 + len(self._lengths) * 2
        return 4 * words + 8 * len(self._rows) + self.tokens.size_bytes

    def scored(self, number: int, postings: Postings, average: float) -> Scored:  # noqa: ARG002 - of the protocol
        """See `Partition.scored`."""
        return Scored.of(postings, self.lengths, average)

    def lists(self) -> TokenLists:
        """Return all posting lists."""
        tokens, all_docs, positions = self._in_order()
        starts = np.flatnonzero(run_starts(tokens, all_docs))
        frequencies = np.diff(np.append(starts, len(tokens))).astype(np.uint32)
        ends = np.searchsorted(tokens[starts], np.arange(len(self._numbers) + 1))
        return TokenLists(ends.astype(np.int64), all_docs[starts], frequencies, positions)

    def _one(self, number: int, places: bool) -> RowPostings:
        tokens, all_docs, positions = self._in_order()
        low, high = np.searchsorted(tokens, [number, number + 1])
        docs, starts, counts = np.unique(all_docs[low:high], return_index=True, return_counts=True)
        found = None
        if places:
            found = Places(np.append(starts, high - low).astype(np.int64), positions[low:high])
        return RowPostings(docs, counts.astype(np.uint32), found)

    def _in_order(self) -> tuple[Words, Words, Words]:
        """Return tokens, documents and positions, sorted by these: as they came, token by token."""
        if self._sorted is None:
            tokens = np.array(self._tokens, np.uint32)
            order = np.argsort(tokens, kind="stable")
            lengths = np.array(self._lengths, np.uint32)
            docs = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)[order]
            positions = np.array(self._positions, np.uint32)[order]
            self._sorted = tokens[order], docs, positions
        return self._sorted
