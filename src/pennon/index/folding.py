"""Letters without their accents, as indices of text have them.

Source: reference index-scalar, 14.4.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Final

_OTHERS: Final = {
    **dict(
        zip("ÆæÐðØøÞþßẞ", ["AE", "ae", "D", "d", "O", "o", "TH", "th", "ss", "SS"], strict=True)
    ),
    **dict(zip("đĐħĦłŁŋŊŧŦıĸ", "dDhHlLnNtTik", strict=True)),
    **dict(zip("œŒ", ["oe", "OE"], strict=True)),
}


@cache
def fold(letter: str) -> str:
    """Return the ASCII letters that a letter stands for; itself, if there are none."""
    known = _OTHERS.get(letter)
    if known is not None:
        return known
    parts = unicodedata.normalize("NFKD", letter)
    return "".join(each for each in parts if each.isascii()) or letter
