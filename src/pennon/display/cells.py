"""Cells of tables that people read: one value as short text, sizes in bytes as ``1.5 MiB``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pennon.errors import printable

MAX_CELL: Final = 40
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")


def cell(value: object, *, shown: Callable[[str], str] = printable, mark: str = "…") -> str:
    """Return a value as text of at most `MAX_CELL` characters; NULL for None.

    ``shown`` escapes characters that the place cannot show; ``mark`` ends a text that was cut.

    >>> cell(None), cell(1.5), len(cell("x" * 100))
    ('NULL', '1.5', 40)
    """
    text = "NULL" if value is None else shown(str(value)[: MAX_CELL + 1])
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - len(mark)] + mark


def size(size_bytes: int) -> str:
    """Return a number of bytes in the unit that suits it.

    >>> size(1536 * 1024)
    '1.5 MiB'
    """
    amount = float(size_bytes)
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
