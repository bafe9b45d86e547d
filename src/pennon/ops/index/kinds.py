"""The names by which users call kinds of indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pennon.errors import UnsupportedError
from pennon.index.registry import KINDS

NAMES: Final[Mapping[str, str]] = {
    "BTREE": "BTreeIndexDetails",
    "BITMAP": "BitmapIndexDetails",
    "LABEL_LIST": "LabelListIndexDetails",
    "NGRAM": "NGramIndexDetails",
    "ZONEMAP": "ZoneMapIndexDetails",
    "BLOOMFILTER": "BloomFilterIndexDetails",
    "INVERTED": "InvertedIndexDetails",
}
_OTHERS: Final = {"LABELLIST": "LABEL_LIST", "FTS": "INVERTED"}


def message_name(kind: str) -> str:
    """Return the name of the details' message of a kind, in any case; raises UnsupportedError."""
    name = kind.upper()
    found = NAMES.get(_OTHERS.get(name, name))
    if found is None or found not in KINDS:
        message = f"Pennon makes no index of kind {kind!r}; the kinds are {', '.join(NAMES)}"
        raise UnsupportedError(message)
    return found


def is_scalar_kind(kind: str) -> bool:
    """Return whether a kind, in any case, is one of plain values."""
    name = kind.upper()
    return _OTHERS.get(name, name) in NAMES


def user_name(message: str) -> str:
    """Return what users call the kind whose details are of a message."""
    return next((name for name, each in NAMES.items() if each == message), message)
