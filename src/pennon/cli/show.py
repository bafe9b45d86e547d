"""How values look in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
MAX_CELL = 40


def console() -> Console:
    """Return a console on stdout; it is wide enough for any table where stdout is no terminal."""
    from rich.console import Console

    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=400)


def print_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int]
) -> None:
    """Print rows under heads; ``numbers`` are the columns that are set to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    right = set(numbers)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(heads):
        table.add_column(name, justify="right" if number in right else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def size(size_bytes: int) -> str:
    """Return e.g. ``1.5 MiB``."""
    amount = float(size_bytes)
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"


def cell(value: object) -> str:
    """Return one value of a row, cut where it is long."""
    text = "NULL" if value is None else str(value).replace("\n", "\\n")
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"
