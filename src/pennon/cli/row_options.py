"""Options that commands with rows share: which rows and columns, in which format they come out, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, TypeVar

import click

from pennon.cli.arguments import (
    ROW_FORMATS,
    as_json,
    blobs,
    columns,
    order_by,
    parse_names,
    parse_order,
    where,
)
from pennon.cli.row_formats import RowOutput

F = TypeVar("F", bound=Callable[..., Any])

most_rows = click.option("--rows", "-n", type=click.IntRange(0), default=10, help="How many rows.")
_OUTPUT: Final = (
    as_json,
    click.option(
        "--format",
        "-f",
        type=click.Choice(ROW_FORMATS),
        help="How rows come out; table if not given.",
    ),
    click.option(
        "--output", "-o", metavar="FILE", help="Write to a file, whose suffix is the format."
    ),
    click.option("--overwrite", is_flag=True, help="Replace the file of --output if it is there."),
)


@dataclass(frozen=True, slots=True)
class RowChoice:
    """The rows and columns that a command asks for; ``order`` as `parse_order` returns it."""

    columns: list[str] | None
    where: str | None
    order: list[tuple[str, bool, bool]] | None
    blobs: str

    @classmethod
    def of(
        cls, columns: str | None, where: str | None, order_by: str | None, blobs: str
    ) -> RowChoice:
        """Return the choice that options make.  Raises ArgumentError for a list of names that is none."""
        return cls(parse_names(columns), where, parse_order(order_by), blobs)


def row_choice(command: F) -> F:
    """Add the options that choose rows and columns; the command gets them as ``choice``."""
    options = (columns, where, order_by, blobs)
    return _collected(command, "choice", RowChoice.of, options)


def rows_out(command: F) -> F:
    """Add the options that say in which format rows come out, and where; the command gets them as ``target``."""
    return _collected(command, "target", RowOutput.of, _OUTPUT)


def _collected(
    command: F, name: str, make: Callable[..., Any], options: Sequence[Callable[[Any], Any]]
) -> F:
    """Return a command that gets what is made of several options as one argument."""
    taken = make.__func__.__annotations__.keys() - {"return"}  # type: ignore[attr-defined]

    @wraps(command)
    def run(**given: Any) -> Any:
        made = make(**{each: given.pop(each) for each in taken})
        return command(**given, **{name: made})

    found: Any = run
    for option in reversed(options):
        found = option(found)
    wrapped: F = found
    return wrapped
