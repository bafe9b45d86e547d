"""Terminal output: text escaped, limited to the terminal's characters, measured in columns.

Nothing else of the command line prints: names and values come from files and tables, and may hold what
a terminal obeys.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final

import click
from rich.cells import cell_len, set_cell_size

from pennon.display import cells
from pennon.errors import ArgumentError, printable

_NAMED_COLUMNS = 10
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]")


def say(text: str, *, label: str = "", err: bool = False) -> None:
    """Print one line after a dim label; ends the program when the reader of a pipe has gone (``| head``)."""
    _print([click.style(shown(label), dim=True) + shown(text) if label else shown(text)], err=err)


def say_all(lines: Iterable[str]) -> None:
    """Print lines, as `say` does."""
    _print([shown(line) for line in lines])


def _print(lines: Sequence[str], *, err: bool = False) -> None:
    with until_pipe_closes(err=err):
        click.echo("\n".join(lines), err=err)


@contextmanager
def until_pipe_closes(*, err: bool = False) -> Iterator[None]:
    """End the program when the reader of a pipe has gone, who has seen enough: no failure."""
    try:
        yield
    except BrokenPipeError:
        stream = sys.stderr if err else sys.stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # Python must not flush again
        sys.exit(0)


def say_json(value: Any) -> None:
    """Print a value as JSON, indented; see `json_text`."""
    write_text(json_text(value, indent=2) + "\n")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON that every terminal shows: what cannot be printed is escaped, as JSON has it.

    Characters beyond ASCII stay where stdout has them.
    """
    text = json.dumps(value, ensure_ascii=not _has_unicode(), indent=indent, allow_nan=False)
    if text.isascii():  # JSON escapes the controls of ASCII but one
        return text.replace("\x7f", "\\u007f")
    return _UNPRINTABLE.sub(_escaped, text)


def _has_unicode() -> bool:
    return (sys.stdout.encoding or "ascii").lower().replace("-", "") == "utf8"


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable() or character == "\n":
        return character
    return json.dumps(character)[1:-1] if ord(character) != 0x7F else "\\u007f"


def write_text(text: str) -> None:
    """Write text to stdout: to a terminal in what it can show, to a pipe or a file as UTF-8, as it is."""
    with until_pipe_closes():
        if sys.stdout.isatty():
            click.echo("\n".join(map(shown, text.split("\n"))), nl=False)
        else:
            click.echo(text.encode("utf-8", "backslashreplace"), nl=False)


def binary_stdout(kind: str) -> IO[bytes]:
    """Return stdout for bytes.  Raises ArgumentError if it is a terminal."""
    if sys.stdout.isatty():
        message = f"{kind} is binary and does not go to a terminal: -o FILE writes a file"
        raise ArgumentError(message)
    return sys.stdout.buffer


def shown(text: str) -> str:
    """Return text as stdout can show it."""
    encoding = sys.stdout.encoding or "ascii"
    return printable(text).encode(encoding, "backslashreplace").decode(encoding)


def _sign(sign: str, plain: str) -> str:
    """Return a sign, or what stands for it where stdout does not have it."""
    return sign if shown(sign) == sign else plain


def print_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int]
) -> None:
    """Print rows under heads; ``numbers`` are the columns that are set to the right.

    Lines are cut where a terminal ends; then a last line names the columns that do not fit.
    (`rich.table` would take longer to import than a small table to read.)
    """
    lines = [[shown(text) for text in line] for line in (heads, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, [_sign("─", "-") * width for width in widths])
    right = set(numbers)
    most = os.get_terminal_size().columns if sys.stdout.isatty() else None
    texts = ["  ".join(_cells(line, widths, right)).rstrip() for line in lines]
    if most is None or all(cell_len(text) <= most for text in texts):
        _print(texts)
        return
    _print([_cut(text, most) for text in texts])
    _print([_does_not_fit(lines[0], widths, most)])


def _cells(line: Sequence[str], widths: Sequence[int], right: set[int]) -> Iterable[str]:
    for number, (text, width) in enumerate(zip(line, widths, strict=True)):
        if number in right:
            yield " " * (width - cell_len(text)) + text
        else:
            yield set_cell_size(text, width)


def _cut(text: str, most: int) -> str:
    mark = _sign("…", ">")
    return text if cell_len(text) <= most else set_cell_size(text, most - 1) + mark


def _does_not_fit(heads: Sequence[str], widths: Sequence[int], most: int) -> str:
    """Return a line that names the columns that end beyond the width of the terminal."""
    ends = [sum(widths[: number + 1]) + 2 * number for number in range(len(widths))]
    names = [name for name, end in zip(heads, ends, strict=True) if end > most]
    more = len(names) - _NAMED_COLUMNS
    tail = f" and {more:,} more" if more > 0 else ""
    return (
        f"(cut where the terminal ends: {', '.join(names[:_NAMED_COLUMNS])}{tail}; "
        f"| less -S shows all)"
    )


def cell(value: object) -> str:
    """Return one value of a row as stdout can show it, cut where it is long."""
    return cells.cell(value, shown=shown, mark=_sign("…", "..."))
