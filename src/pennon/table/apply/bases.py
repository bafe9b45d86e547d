"""Further roots for files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pennon.errors import ArgumentError
from pennon.table.fragment import BasePath


def with_new_bases(old: Iterable[BasePath], new: Iterable[BasePath]) -> tuple[BasePath, ...]:
    """Return base paths and further ones, of which those with id 0 get the next one.

    Raises ArgumentError if an id, a name or a path is there already.
    """
    bases = list(old)
    for each in new:
        last = max((base.id for base in bases), default=0)
        base = replace(each, id=last + 1) if each.id == 0 else each
        _check_new(base, bases)
        bases.append(base)
    return tuple(bases)


def _check_new(new: BasePath, bases: list[BasePath]) -> None:
    for base in bases:
        same_name = new.name is not None and new.name == base.name
        if same_name or new.path == base.path or new.id == base.id:
            message = f"base path {new} clashes with {base}"
            raise ArgumentError(message)
