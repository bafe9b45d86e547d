"""Words of programs: identifiers, their parts, and operators.

::

    fooBarBaz       fooBarBaz foo Bar Baz          split_identifiers
    HTTPServer2     HTTPServer2 HTTP Server 2      split_on_numerics too
    a += b          a += b                         index_operators

Source: reference index-scalar, 14.1; measured on pylance 14.0.2.
"""

from __future__ import annotations

import re
from functools import cache
from string import digits
from typing import Final

from pennon.core.word_characters import word_class

_OPERATORS: Final = [
    "!==",
    "<<=",
    "||=",
    "<=>",
    "===",
    ">>=",
    ">>>",
    "&&=",
    "??=",
    "**=",
    "//=",
    "->",
    "||",
    "~=",
    "/=",
    "%=",
    "&=",
    "==",
    "-=",
    "*=",
    "//",
    "=>",
    "&&",
    ":=",
    ">=",
    "+=",
    "::",
    "<=",
    "<<",
    ">>",
    "++",
    "<-",
    "**",
    "??",
    "|=",
    "!=",
    "^=",
    "|>",
    "--",
    ">",
    "%",
    "=",
    "+",
    "<",
    "|",
    "?",
    "~",
    "/",
    "&",
    "^",
    "-",
    ":",
    "!",
    "*",
]
"""What counts as an operator, longest first: of other punctuation nothing is kept."""


@cache
def code_words() -> re.Pattern[str]:
    """Return what finds identifiers and operators, the latter as a second group."""
    return re.compile(f"([_{word_class()}]+)|({'|'.join(map(re.escape, _OPERATORS))})")


def parts_of(word: str, *, by_digits: bool) -> list[str]:
    """Return the parts of an identifier: at underscores, where small letters end, and at digits."""
    found = []
    for piece in word.split("_"):
        start = 0
        for at in range(1, len(piece)):
            if _is_border(piece, at, by_digits=by_digits):
                found.append(piece[start:at])
                start = at
        if piece:
            found.append(piece[start:])
    return found


def _is_border(piece: str, at: int, *, by_digits: bool) -> bool:
    before, here = piece[at - 1], piece[at]
    if (before in digits) != (here in digits):  # of ASCII alone: x² is one part
        return by_digits
    if before.islower() and here.isupper():
        return True
    follows = piece[at + 1 : at + 2]
    return before.isupper() and here.isupper() and follows.islower()
