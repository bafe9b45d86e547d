"""Completion of tables, columns, versions and indices in a shell.

A name is offered only if all of its characters can be printed and none is a blank: names come from files,
and a shell obeys more than that.  A table that cannot be read offers nothing, without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
from click.shell_completion import CompletionItem

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_MOST: Final = 200
_VERSIONS: Final = 20


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
    shown = [each for each in [*tables, *others] if each.name.isprintable() and " " not in each.name]
    if not tables:
        return [CompletionItem(incomplete, type="dir")]
    return [
        CompletionItem(f"{folder}{slash}{each.name}{'' if each in tables else '/'}")
        for each in shown[:_MOST]
    ]


@_offering
def complete_columns(context: click.Context, incomplete: str) -> Iterable[str]:
    """Return paths of columns that go on behind the last comma."""
    from pennon.schema.project import walk_paths  # as above

    before, comma, _ = incomplete.rpartition(",")
    found = walk_paths(_opened(context).manifest.schema)
    return [f"{before}{comma}{path}" for path, _ in found if "," not in path]


@_offering
def complete_versions(context: click.Context, _incomplete: str) -> Iterable[str]:
    """Return tags, branches and the newest versions."""
    from pennon.ops.versions.branches import branches_of  # saves operations at --help
    from pennon.ops.versions.refs import tags_of  # as above
    from pennon.table.versions import list_locations  # as above

    here = _opened(context)
    numbers = sorted((each.version for each in list_locations(here.store)), reverse=True)
    return [*sorted(tags_of(here)), *sorted(branches_of(here)), *map(str, numbers[:_VERSIONS])]


@_offering
def complete_indices(context: click.Context, _incomplete: str) -> Iterable[str]:
    """Return the names of indices."""
    from pennon.table.indices_wire import parse_indices  # as above

    return sorted({each.name for each in parse_indices(_opened(context).manifest.indices)})


def _opened(context: click.Context) -> Any:
    from pennon.cli.arguments import parse_pairs  # as above
    from pennon.cli.at import open_at  # as above

    given = {**context.params}
    if given.get("uri") is None:  # behind an option that waits for its value, click leaves arguments unnamed
        names = [each.name for each in context.command.params if isinstance(each, click.Argument)]
        given.update(zip(names, context.args, strict=False))
    at = given.get("at") or given.get("branch")
    return open_at(given["uri"], at, parse_pairs(given.get("storage_option") or ()) or None)
