"""What characters are to full text: which make tokens, and which tokens nobody looks for.

The tables beside this module were measured on pylance 14.0.2, for Python's own differ: it takes vowel signs and
circled letters for the ends of words, and knows another Unicode.  They are read when a text is first
looked at.

=====================  ======================================================================
token_characters.txt   code points and ranges of them, hexadecimal, that words are made of
stop_words.txt         a line each: language, tab, words
=====================  ======================================================================

Source: reference index-scalar, 14.1 and 14.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from pennon.index.text.arrays import Bytes

_CODE_POINTS: Final = 0x110000
_TABLES: Final = Path(__file__).parent / "tables"


def _ranges() -> Iterator[tuple[int, int]]:
    for entry in _lines("token_characters.txt"):
        for each in entry.split():
            first, _, last = each.partition("-")
            yield int(first, 16), int(last or first, 16)


@cache
def token_class() -> str:
    """Return the characters of words as the inside of a regular expression's brackets."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in _ranges())


@cache
def token_bits() -> Bytes:
    """Return the characters of words, a bit for each code point."""
    found = np.zeros(_CODE_POINTS, np.bool_)
    for first, last in _ranges():
        found[first : last + 1] = True
    return np.packbits(found, bitorder="little")


@cache
def white_bits() -> Bytes:
    """Return the characters that are no white space of ASCII, a bit for each code point."""
    found = np.ones(_CODE_POINTS, np.bool_)
    found[[0x09, 0x0A, 0x0C, 0x0D, 0x20]] = False
    return np.packbits(found, bitorder="little")


@cache
def words() -> re.Pattern[str]:
    """Return what finds the words of a text."""
    return re.compile(f"[{token_class()}]+")


def lower(text: str) -> str:
    """Return a text in small letters, each by itself: a sigma at the end of a word is like any other."""
    if "\u03a3" not in text:
        return text.lower()
    return "".join(map(str.lower, text))


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the words of a language that nobody looks for; none of one that is not known."""
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
