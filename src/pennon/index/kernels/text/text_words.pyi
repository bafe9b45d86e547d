"""The words of texts, and a number for each that differs from the others."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]
Words: TypeAlias = npt.NDArray[np.uint32]

class WordTable:
    """Words, as they stand in texts; each has the next number when it is first seen."""

    def __len__(self) -> int:
        """Return how many words there are."""

    @property
    def size_bytes(self) -> int:
        """Return how much memory they take."""

    def word(self, number: int) -> bytes:
        """Return the word of a number.  Raises IndexError."""

    def split(
        self, data: Bytes, ends: Int64Array, classes: Bytes, words: Words, counts: Words
    ) -> int:
        """Fill ``words`` with the numbers of the words of texts, and ``counts`` with how many each has.

        Text i is ``data[ends[i]:ends[i + 1]]``, UTF-8.  A word is as many characters of those in ``classes``
        as follow one another: a bit for each code point.  There must be room for a word of every other byte,
        and one more for each text.  Returns how many words there are.
        """
