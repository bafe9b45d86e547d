"""The characters that words are made of, as pylance 14.0.2 takes them: letters, digits, vowel signs, circled letters.

Python's own differ: it takes vowel signs and circled letters for the ends of words, and knows another Unicode.
``tables/word_characters.txt`` has the code points and ranges of them, hexadecimal; it is read when words are first
looked for.

Source: measured; reference index-scalar, 14.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

_TABLE: Final = Path(__file__).parent / "tables" / "word_characters.txt"


def word_ranges() -> Iterator[tuple[int, int]]:
    """Yield the first and the last code point of each range."""
    for entry in _TABLE.read_text(encoding="utf-8").split():
        first, _, last = entry.partition("-")
        yield int(first, 16), int(last or first, 16)


@cache
def word_class() -> str:
    """Return the characters as the inside of a regular expression's brackets."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in word_ranges())


@cache
def words() -> re.Pattern[str]:
    """Return what finds the words of a text."""
    return re.compile(f"[{word_class()}]+")
