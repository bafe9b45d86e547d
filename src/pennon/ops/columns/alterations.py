"""Apply alterations to a schema: names, nullability and types of existing columns.

A field keeps its id unless its type changes; then it gets a new one, and so do all fields below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa

from pennon.core.units import FieldId
from pennon.errors import InvalidSchemaError
from pennon.ops.columns.casts import can_cast
from pennon.ops.columns.names import find_column
from pennon.schema.arrow import field_to_arrow, schema_from_arrow
from pennon.schema.check import check_names
from pennon.schema.field import Field, Schema
from pennon.schema.maps import check_maps

_OF_TYPES = ("ARROW:extension:", "lance-encoding:")
"""Metadata that is about a type, and means nothing for another one."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """A change of the column at a path; None leaves a property unchanged."""

    path: str
    name: str | None = None
    nullable: bool | None = None
    data_type: pa.DataType | None = None


@dataclass(frozen=True, slots=True)
class AlteredSchema:
    """The schema after alterations.

    ``cast`` has the top-level fields of which a part has another type, as they were and as they are.
    ``tightened`` are paths, by names as they were, of fields that may not be NULL any more.
    """

    schema: Schema
    cast: tuple[tuple[Field, Field], ...]
    tightened: tuple[str, ...]


def alter_schema(
    schema: Schema, alterations: Iterable[Alteration], last_id: FieldId
) -> AlteredSchema:
    """Return the schema with all alterations made; their paths are those before.

    Raises NotFoundError, InvalidSchemaError (two columns of one name, a cast from one kind of
    type to another).
    """
    ids = map(FieldId, count(last_id + 1))
    altered, tightened = schema, []
    for each in alterations:
        field = find_column(schema, each.path)[-1]
        if each.nullable is False and field.nullable:
            tightened.append(each.path)
        altered = Schema(
            tuple(_change(top, field.id, each, ids) for top in altered.fields), schema.metadata
        )
    if altered.names != schema.names:
        check_names(altered)
    for top in altered.fields:
        _check_distinct(top)
    check_maps(altered)
    return AlteredSchema(altered, _cast_fields(schema, altered), tuple(tightened))


def with_ascending_ids(schema: Schema, altered: AlteredSchema, last_id: FieldId) -> AlteredSchema:
    """Return the altered schema with the columns that were cast in the order of their ids.

    Files of version 0.1 have their fields in that order.  Where a field between old ones has a new
    id, all fields of these columns get new ones.
    """
    cast = sorted(altered.cast, key=lambda pair: pair[1].id)
    found = [field.id for _, new in cast for field in new.walk()]
    if found == sorted(found):
        return replace(altered, cast=tuple(cast))
    ids = map(FieldId, count(last_id + 1))
    tops = frozenset(new.id for _, new in cast)
    fields = tuple(f.renumbered(ids) if f.id in tops else f for f in altered.schema.fields)
    fresh = replace(altered.schema, fields=fields)
    return replace(altered, schema=fresh, cast=_cast_fields(schema, fresh))


def _cast_fields(old: Schema, new: Schema) -> tuple[tuple[Field, Field], ...]:
    pairs = zip(old.fields, new.fields, strict=True)
    return tuple((before, after) for before, after in pairs if _shape(before) != _shape(after))


def _change(field: Field, wanted: FieldId, how: Alteration, ids: Iterator[FieldId]) -> Field:
    """Return the field, changed if its id is the one wanted, else with its children looked at."""
    if field.id != wanted:
        children = tuple(_change(child, wanted, how, ids) for child in field.children)
        return field if children == field.children else replace(field, children=children)
    name = field.name if how.name is None else how.name
    nullable = field.nullable if how.nullable is None else how.nullable
    renamed = replace(field, name=name, nullable=nullable)
    shown = field_to_arrow(field).type
    if how.data_type is None or how.data_type == shown:
        return renamed
    if not can_cast(shown, how.data_type):
        message = f'Cannot cast column "{how.path}" from {shown} to {how.data_type}'
        raise InvalidSchemaError(message)
    return _cast(renamed, how.data_type, ids)


def _cast(field: Field, data_type: pa.DataType, ids: Iterator[FieldId]) -> Field:
    arrow = pa.schema([pa.field(field.name, data_type, nullable=field.nullable)])
    (made,) = schema_from_arrow(arrow).fields
    kept = {k: v for k, v in field.metadata.items() if not k.startswith(_OF_TYPES)}
    return replace(made, metadata={**kept, **made.metadata}).renumbered(ids)


def _check_distinct(field: Field) -> None:
    """Raise InvalidSchemaError if two fields of a struct have one name."""
    names = [child.name for child in field.children]
    if len(set(names)) != len(names):
        message = f"two fields of {field.name!r} have one name: {names}"
        raise InvalidSchemaError(message)
    for child in field.children:
        _check_distinct(child)


def _shape(field: Field) -> list[tuple[FieldId, str]]:
    return [(each.id, each.logical_type) for each in field.walk()]
