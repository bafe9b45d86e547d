"""Letters without their accents, as indices of text have them.

The table (`tables/ascii_folding.txt`: a line each of ASCII, a tab, the code points that become it) was measured on
pylance 14.0.2, for Python's own Unicode is another.  It is read when a text that is not ASCII is first looked at.

Source: reference index-scalar, 14.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

_TABLE: Final = Path(__file__).parent / "tables" / "ascii_folding.txt"


def fold(text: str) -> str:
    """Return a text without accents; what has no form in ASCII stays."""
    return text if text.isascii() else text.translate(_folding())


@cache
def _folding() -> Mapping[int, str]:
    found = {}
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        plain, _, points = line.partition("\t")
        found.update(dict.fromkeys((int(each, 16) for each in points.split()), plain))
    return found
