"""The keys of a transducer of tokens: one, all, or those near a word.

``root`` is the address of the first node; nodes end at byte ``end``.  Raises FormatError for a node that lies
elsewhere.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
Words: TypeAlias = npt.NDArray[np.uint32]

def find_key(data: Bytes, root: int, end: int, key: Bytes) -> int | None:
    """Return the value of a key; None if there is no such key."""

def walk(
    data: Bytes, root: int, end: int, word: Words, distance: int, prefix: int, most: int
) -> list[tuple[bytes, int]]:
    """Return keys in order and their values, no more than ``most``.

    Unless ``distance`` is below 0, these are the keys of UTF-8 that so many edits of characters make of a word, of
    which the first ``prefix`` characters are the same.
    """
