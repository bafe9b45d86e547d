"""A table's schema: a tree of fields, each with an id that outlives its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from operator import is_
from typing import Any

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.errors import ArgumentError

UNASSIGNED = FieldId(-1)


@dataclass(frozen=True, slots=True)
class Field:
    """One field.  Lists, large lists and maps have one child, structs any number.

    A fixed-size list of primitive values has no child: its logical type says it all.

    ``logical_type`` is the string of file.proto, e.g. ``int32``, ``fixed_size_list:float:768``.
    ``metadata`` holds the Arrow field metadata (extension name and parameters among it).
    """

    name: str
    id: FieldId
    logical_type: str
    nullable: bool = True
    metadata: Mapping[str, bytes] = field(default_factory=dict)
    children: tuple[Field, ...] = ()
    arrow: pa.Field[Any] | None = field(default=None, init=False, repr=False, compare=False)
    """The Arrow field, once it was asked for, unless extension types are in it (`schema.arrow`)."""

    def __reduce__(self) -> tuple[type[Field], tuple[Any, ...]]:
        """Pickle without the Arrow field."""
        values = self.name, self.id, self.logical_type, self.nullable, self.metadata, self.children
        return Field, values

    def walk(self) -> Iterator[Field]:
        """Yield this field and all below it, depth first: the order of ids and of columns."""
        yield self
        for child in self.children:
            yield from child.walk()

    def with_children(self, change: Callable[[Field], Field]) -> Field:
        """Return the field with each child changed; itself if none is."""
        if not self.children:
            return self
        children = tuple([change(child) for child in self.children])
        return self if all(map(is_, children, self.children)) else replace(self, children=children)

    def renumbered(self, ids: Iterator[FieldId]) -> Field:
        """Return the field, and all below it, with the next ids, depth first."""
        numbered = replace(self, id=next(ids))
        return numbered.with_children(lambda child: child.renumbered(ids))

    def numbered(self, ids: Iterator[FieldId]) -> Field:
        """Return the field with the next ids where it, or one below it, has none; depth first."""
        numbered = replace(self, id=next(ids)) if self.id == UNASSIGNED else self
        return numbered.with_children(lambda child: child.numbered(ids))


@dataclass(frozen=True, slots=True)
class Schema:
    """The top-level fields of a table or file, and its metadata."""

    fields: tuple[Field, ...]
    metadata: Mapping[str, bytes] = field(default_factory=dict)

    def walk(self) -> Iterator[Field]:
        """Yield every field, depth first."""
        for top in self.fields:
            yield from top.walk()

    def field(self, field_id: int) -> Field:
        """Return the field with this id, at any depth; the first one if a damaged table has two.

        Raises ArgumentError if there is none.
        """
        for known in self.walk():
            if known.id == field_id:
                return known
        message = f"the schema has no field with id {field_id}"
        raise ArgumentError(message)

    def relatives(self, ids: Iterable[FieldId]) -> frozenset[FieldId]:
        """Return the ids of fields, of all fields that these lie in, and of all fields below them."""
        wanted, found = frozenset(ids), set[FieldId]()

        def visit(field: Field, above: tuple[FieldId, ...]) -> None:
            path = (*above, field.id)
            if field.id in wanted:
                found.update(path, [each.id for each in field.walk()])
            for child in field.children:
                visit(child, path)

        for top in self.fields:
            visit(top, ())
        return wanted | found

    def max_field_id(self) -> int:
        """Return the highest field id, or -1 for a schema without fields."""
        return max((known.id for known in self.walk()), default=UNASSIGNED)

    @property
    def names(self) -> list[str]:
        """The names of the top-level fields, in order."""
        return [top.name for top in self.fields]
