"""A schema with new fields, also inside of structs that are there already.

From file version 2.2 on a struct may get fields of NULLs, wherever it nests in structs and lists.  They
lie in no file, and get the ids that follow all others, in the order of the schema.

Source: ledger F-393.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count, repeat

import pyarrow as pa

from pennon.core.units import FieldId
from pennon.errors import Breadcrumb, InvalidSchemaError, UnsupportedError
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.check import is_packed
from pennon.schema.field import UNASSIGNED, Field, Schema
from pennon.table.field_ids import highest_field_id
from pennon.table.manifest import Manifest

_MAY_GROW = ("struct", "list.struct", "large_list.struct")


def grown_schema(manifest: Manifest, arrow: pa.Schema) -> Schema:
    """Return a table's schema with new fields, where those of a name that is there go into it.

    Raises InvalidSchemaError for a column that is there already or is never NULL, UnsupportedError
    for a field of a packed struct.
    """
    schema = manifest.schema
    ids = map(FieldId, count(highest_field_id(manifest) + 1))
    fields = _grown(schema.fields, schema_from_arrow(arrow).fields, "")
    return replace(schema, fields=tuple(field.numbered(ids) for field in fields))


def _grown(old: tuple[Field, ...], new: tuple[Field, ...], prefix: str) -> tuple[Field, ...]:
    fields = list(old)
    places = {field.name: place for place, field in enumerate(old)}
    for field in new:
        path = prefix + field.name
        place = places.get(field.name)
        if place is not None:
            fields[place] = _grown_field(fields[place], field, path)
            continue
        if not field.nullable:
            message = f"All-null columns must be nullable, but column {path!r} is not"
            raise InvalidSchemaError(message)
        fields.append(field.renumbered(repeat(UNASSIGNED)))
    return tuple(fields)


def _grown_field(old: Field, new: Field, path: str) -> Field:
    if old.logical_type != new.logical_type or old.logical_type not in _MAY_GROW:
        message = f"Column {path} already exists in the dataset"
        raise InvalidSchemaError(message)
    if is_packed(old):
        message = f"column {path!r} is a packed struct, which gets no more fields; add a column"
        raise UnsupportedError(message, where=Breadcrumb(column=path))
    if old.logical_type == "struct":
        return replace(old, children=_grown(old.children, new.children, f"{path}."))
    (item,), (added,) = old.children, new.children
    return replace(old, children=(_grown_field(item, added, f"{path}.{item.name}"),))
