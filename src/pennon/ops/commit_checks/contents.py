"""The fields that a data file holds, by its own word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pennon.core.units import ColumnIndex, FieldId
from pennon.errors import Breadcrumb, NotFoundError, SchemaMismatchError
from pennon.scan.read.file_columns import FileColumns
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Schema
from pennon.schema.named_fields import NamedField, Step, named_fields
from pennon.table.fragment import DataFileRef


@dataclass(frozen=True, slots=True)
class Contents:
    """The fields of a data file.

    ``named``: those with columns, by the table's ids.  ``moved``: those of them that have another id in the
    file itself, so somebody gave its column to a field on purpose.  ``fields``: all of the file's own
    schema, by their paths.
    """

    named: Mapping[FieldId, NamedField]
    moved: frozenset[FieldId]
    fields: Mapping[tuple[Step, ...], NamedField]


def contents_of(snapshot: Snapshot, ref: DataFileRef) -> Contents | None:
    """Return the fields in a data file: those it was written with, or else those in its footer.

    None for a file that is not there, which the commit will say, and for one in another base path, which
    may not be trusted.  Raises SchemaMismatchError if a field's column is not there, FormatError or
    UnsupportedError for a file that cannot be read.
    """
    own = _own_schema(snapshot, ref)
    if own is None:
        return None
    schema, column_of = own
    fields = named_fields(schema)
    id_at = {column: number for number, column in column_of.items() if number in fields}
    found = {}
    for number, column in FileColumns.of(ref).column_of.items():
        if column < 0:
            continue
        if column not in id_at:
            message = (
                f"field {number} is said to lie in column {column}, which the file does not have"
            )
            raise SchemaMismatchError(message, where=Breadcrumb(file=ref.store_path))
        found[number] = id_at[column]
    return Contents(
        {number: fields[own] for number, own in found.items()},
        frozenset(number for number, own in found.items() if number != own),
        {each.path: each for each in fields.values()},
    )


def _own_schema(
    snapshot: Snapshot, ref: DataFileRef
) -> tuple[Schema, Mapping[FieldId, ColumnIndex]] | None:
    """Return the schema in a file, and the columns of its fields."""
    written = ref.written
    if written is not None:
        known = DataFileRef(
            ref.path, written.field_ids, written.column_indices, ref.major, ref.minor
        )
        return written.schema, FileColumns.of(known).column_of
    if ref.base_id is not None:
        return None
    try:
        data = snapshot.open_file(ref).data
    except NotFoundError:
        return None
    return data.schema, data.column_of
