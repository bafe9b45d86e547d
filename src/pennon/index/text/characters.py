"""Character classes of full-text search, and stop words.

The table ``stop_words.txt`` beside this module was measured on pylance 14.0.2: a line each has a language, a tab, and
words.  It is read when a text is first looked at.

Source: reference index-scalar, 14.1 and 14.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from pennon.core.word_characters import word_ranges
from pennon.index.text.arrays import Bytes

_CODE_POINTS: Final = 0x110000
_TABLES: Final = Path(__file__).parent / "tables"


@cache
def token_bits() -> Bytes:
    """Return the characters of words, a bit for each code point."""
    found = np.zeros(_CODE_POINTS, np.bool_)
    for first, last in word_ranges():
        found[first : last + 1] = True
    return np.packbits(found, bitorder="little")


@cache
def white_bits() -> Bytes:
    """Return the characters that are no white space of ASCII, a bit for each code point."""
    found = np.ones(_CODE_POINTS, np.bool_)
    found[[0x09, 0x0A, 0x0C, 0x0D, 0x20]] = False
    return np.packbits(found, bitorder="little")


def lower(text: str) -> str:
    """Return a text in small letters, each by itself: a sigma at the end of a word is like any other."""
    if "\u03a3" not in text:
        return text.lower()
    return "".join(map(str.lower, text))


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language; none for an unknown one."""
    return _all_stop_words().get(language, frozenset())


def languages() -> tuple[str, ...]:
    """Return the languages that words can be of."""
    return tuple(_all_stop_words())


@cache
def _all_stop_words() -> Mapping[str, frozenset[str]]:
    parts = (line.partition("\t") for line in _lines("stop_words.txt"))
    return {language: frozenset(words.split()) for language, _, words in parts}


def _lines(name: str) -> list[str]:
    return (_TABLES / name).read_text(encoding="utf-8").splitlines()
