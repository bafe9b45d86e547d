"""Completion of tables, columns, versions and indices in a shell.

A name is offered only if all of its characters can be printed and none is a blank: names come from files,
and a shell obeys more than that.  A table that cannot be read offers nothing, without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Final, TypeAlias

import click
from click.shell_completion import CompletionItem

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_MOST: Final = 200


def _offering(find: Callable[[click.Context, str], Iterable[str]]) -> Complete:
    """Return a function that offers what another one finds."""

    @wraps(find)
    def complete(
        context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            found = [name for name in find(context, incomplete) if name.startswith(incomplete)]
        except Exception:  # noqa: BLE001 - a table that cannot be read has nothing to offer
            return []
        shown = [name for name in found if name.isprintable() and " " not in name]
        return [CompletionItem(name) for name in shown[:_MOST]]

    return complete


def complete_tables(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer tables and folders on a local disk; a shell offers them itself where there is no table."""
    folder, slash, begin = incomplete.rpartition("/")
    place = Path(folder or (slash or "."))
    try:
        inside = sorted(each for each in place.iterdir() if each.name.startswith(begin))
        tables = [each for each in inside if (each / "_versions").is_dir()]
    except OSError:
        return []
    others = [each for each in inside if each.is_dir() and each not in tables]
    shown = [
        each for each in [*tables, *others] if each.name.isprintable() and " " not in each.name
    ]
    if not tables:
        return [CompletionItem(incomplete, type="dir")]
    return [
        CompletionItem(f"{folder}{slash}{each.name}{'' if each in tables else '/'}")
        for each in shown[:_MOST]
    ]


@_offering
def complete_columns(context: click.Context, incomplete: str) -> Iterable[str]:
    """Return paths of columns that go on behind the last comma."""
    before, comma, _ = incomplete.rpartition(",")
    return [f"{before}{comma}{path}" for path in _names(context, "columns_of")]


@_offering
def complete_versions(context: click.Context, _incomplete: str) -> Iterable[str]:
    """Return tags, branches and the newest versions."""
    return _names(context, "versions_of")


@_offering
def complete_indices(context: click.Context, _incomplete: str) -> Iterable[str]:
    """Return the names of indices."""
    return _names(context, "indices_of")


def _names(context: click.Context, kind: str) -> list[str]:
    """Return names of the table that the words so far name; raises as opening it does."""
    given = {**context.params}
    if (
        given.get("uri") is None
    ):  # behind an option that waits for its value, click leaves arguments unnamed
        names = [each.name for each in context.command.params if isinstance(each, click.Argument)]
        given.update(zip(names, context.args, strict=False))
    options = dict(pair.split("=", 1) for pair in given.get("storage_option") or ())
    inside = import_module("pennon.cli.names_in_tables")  # it loads tables, and --help does not
    found: list[str] = getattr(inside, kind)(inside.opened(given, options))
    return found
