"""Spans of time in words: ``15 minutes``, ``1 day 2 hours``."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Final

import pyarrow as pa

NANOSECONDS: Final = {
    "WEEK": 604_800 * 10**9,
    "DAY": 86_400 * 10**9,
    "HOUR": 3_600 * 10**9,
    "MINUTE": 60 * 10**9,
    "SECOND": 10**9,
    "MILLISECOND": 10**6,
    "MICROSECOND": 10**3,
    "NANOSECOND": 1,
}
MONTHS: Final = {"MONTH": 1, "YEAR": 12}


def nanoseconds_of(text: str) -> tuple[int, int]:
    """Return the months of a span, and its nanoseconds.  Raises ArrowInvalid for other texts."""
    words = re.findall(r"([+-]?[\d.]+)\s*([A-Za-z]+)\s*", text)
    if not words or re.sub(r"[+-]?[\d.]+\s*[A-Za-z]+\s*", "", text).strip():
        message = f"{text[:40]!r} is no span of time"
        raise pa.ArrowInvalid(message)
    months = nanos = 0
    for count, word in words:
        unit = word.upper().removesuffix("S")
        months += _count(count, MONTHS.get(unit), text)
        nanos += _count(count, NANOSECONDS.get(unit), text)
        if unit not in MONTHS and unit not in NANOSECONDS:
            message = f"{word!r} is no unit of time"
            raise pa.ArrowInvalid(message)
    return months, nanos


def _count(number: str, unit: int | None, text: str) -> int:
    if unit is None:
        return 0
    try:
        found = int(Decimal(number) * unit)
    except (InvalidOperation, OverflowError) as error:
        message = f"{text[:40]!r} is no span of time"
        raise pa.ArrowInvalid(message) from error
    if abs(found) >= 1 << 63:
        message = f"{text[:40]!r} is too long"
        raise pa.ArrowInvalid(message)
    return found
