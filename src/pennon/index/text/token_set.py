"""The tokens of a partition and their numbers: as a transducer, or as a table of old releases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pennon.index.text.token_fst import TokenFst


class TokenSet(Protocol):
    """The tokens of a partition."""

    @property
    def size_bytes(self) -> int:
        """Return about how much memory it takes."""

    def find(self, token: str) -> int | None:
        """Return the number of a token; None if it is not there."""

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Yield all tokens in the order of their bytes, and their numbers."""

    def near(self, token: str, distance: int, prefix: int, most: int) -> Iterator[tuple[str, int]]:
        """Yield the tokens that so many edits of characters make of one, in order, and their numbers.

        No more than ``most``; the first ``prefix`` characters are the same.
        """


class FstTokens:
    """The tokens of a transducer."""

    def __init__(self, data: bytes) -> None:
        """Raise FormatError if the bytes are damaged."""
        self._fst = TokenFst(data)
        self.size_bytes = len(data)

    def find(self, token: str) -> int | None:
        """See `TokenSet.find`."""
        return self._fst.find(token.encode("utf-8", "surrogatepass"))

    def items(self) -> Iterator[tuple[bytes, int]]:
        """See `TokenSet.items`."""
        return iter(self._fst.items())

    def near(self, token: str, distance: int, prefix: int, most: int) -> Iterator[tuple[str, int]]:
        """See `TokenSet.near`."""
        for key, number in self._fst.near(token, distance, prefix, most):
            yield key.decode("utf-8", "surrogatepass"), number


class TableTokens:
    """The tokens of a table, in any order."""

    def __init__(self, tokens: pa.Array[Any], numbers: npt.NDArray[np.uint64]) -> None:
        """Sort them."""
        order = pc.sort_indices(tokens)
        self._tokens = tokens.take(order)
        self._numbers = numbers[order.to_numpy()]
        self.size_bytes = int(self._tokens.nbytes) + self._numbers.nbytes

    def find(self, token: str) -> int | None:
        """See `TokenSet.find`."""
        low, high = 0, len(self._tokens)
        while low < high:
            middle = (low + high) // 2
            if _bytes(self._tokens[middle]) < token.encode("utf-8", "surrogatepass"):
                low = middle + 1
            else:
                high = middle
        is_there = low < len(self._tokens) and self._tokens[low].as_py() == token
        return int(self._numbers[low]) if is_there else None

    def items(self) -> Iterator[tuple[bytes, int]]:
        """See `TokenSet.items`."""
        return zip(map(_bytes, self._tokens), self._numbers.tolist(), strict=True)

    def near(self, token: str, distance: int, prefix: int, most: int) -> Iterator[tuple[str, int]]:
        """See `TokenSet.near`."""
        edits = Edits(token, distance, prefix)
        lengths = pc.utf8_length(self._tokens).to_numpy(zero_copy_only=False)
        for place in np.flatnonzero(np.abs(lengths.astype(np.int64) - len(token)) <= distance):
            text = self._tokens[int(place)].as_py()
            if edits.near(text):
                if not most:
                    return
                most -= 1
                yield text, int(self._numbers[place])


class Edits:
    """Edit distances of texts from one text, character by character.

    A row begins with the number of characters so far; then comes, for each begin of the word, the least
    number of edits that make the characters of it.
    """

    def __init__(self, word: str, distance: int, prefix: int) -> None:
        """Look for what is at most ``distance`` edits away, behind a prefix of so many characters."""
        self._word, self._most = word, distance
        self._prefix = min(prefix, len(word))
        self.start: tuple[int, ...] = (0, *range(len(word) + 1))

    def step(self, row: tuple[int, ...], character: str) -> tuple[int, ...] | None:
        """Return the row behind a character; None if nothing that goes on so is near."""
        count, word = row[0] + 1, self._word
        if count <= self._prefix and word[count - 1] != character:
            return None
        made = [count, row[1] + 1]
        for at, known in enumerate(word, 1):
            least = row[at] + (known != character)
            made.append(min(least, row[at + 1] + 1, made[at] + 1))
        return tuple(made) if min(made[1:]) <= self._most else None

    def near(self, text: str) -> bool:
        """Return whether a text is near."""
        row = self.start
        for character in text:
            further = self.step(row, character)
            if further is None:
                return False
            row = further
        return self.is_near(row)

    def is_near(self, row: tuple[int, ...]) -> bool:
        """Return whether the characters so far are a text that is near."""
        return row[0] >= self._prefix and row[-1] <= self._most


def _bytes(text: pa.Scalar) -> bytes:
    found: bytes = text.as_py().encode("utf-8", "surrogatepass")
    return found
