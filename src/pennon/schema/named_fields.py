"""The fields of a schema by id, each with its path, its type, and whether it may be NULL.

Two schemas mean the same by an id if its `NamedField` is the same in both.  Items of lists, and keys and
values of maps, count by their position: Arrow libraries give them different names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TypeAlias

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.schema.field import Field, Schema
from pennon.schema.project import quoted

Step: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class NamedField:
    """A field by its path from the top of the schema; ``text`` is the path as a user writes it."""

    path: tuple[Step, ...]
    logical_type: str
    nullable: bool = field(compare=False)
    text: str = field(compare=False)


def named_fields(schema: Schema) -> dict[FieldId, NamedField]:
    """Return the fields of a schema by their ids; the first one if a damaged table has two of an id."""
    found: dict[FieldId, NamedField] = {}
    for top in schema.fields:
        for number, named in _walk(top, (top.name,), _written(top.name)):
            found.setdefault(number, named)
    return found


def _walk(field: Field, path: tuple[Step, ...], text: str) -> Iterator[tuple[FieldId, NamedField]]:
    kind = field.logical_type.removesuffix(".struct")  # of lists of blobs: ledger F-451
    yield field.id, NamedField(path, kind, field.nullable, text)
    has_names = field.logical_type == "struct" and path[-1:] != (_ENTRIES,)
    for at, child in enumerate(field.children):
        if field.logical_type == "map":
            step: Step = _ENTRIES
        else:
            step = child.name if has_names else at
        yield from _walk(child, (*path, step), f"{text}.{_written(child.name)}")


_ENTRIES = -1
"""The step from a map to its pairs, whose two fields count by their position as well."""


def _written(name: str) -> str:
    """Return a name as it stands in a path."""
    return name if name.isidentifier() else quoted(name)
