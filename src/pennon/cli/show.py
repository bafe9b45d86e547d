"""How values look in a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from rich.console import Console

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
MAX_CELL = 40


def console() -> Console:
    """Return a console on stdout; it is wide enough for any table where stdout is no terminal."""
    from rich.console import Console  # saves rich for tables and --help

    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=400)


def print_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int]
) -> None:
    """Print rows under heads; ``numbers`` are the columns that are set to the right.

    Lines are cut where a terminal ends.  (`rich.table` would take longer to import than a small
    table to read.)
    """
    lines = [list(heads), *map(list, rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["─" * width for width in widths])
    right = set(numbers)
    most = os.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in lines:
        cells = [
            " " * (width - cell_len(text)) + text if number in right else set_cell_size(text, width)
            for number, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        text = "  ".join(cells).rstrip()
        print(
            text if most is None or cell_len(text) <= most else set_cell_size(text, most - 1) + "…"
        )


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
