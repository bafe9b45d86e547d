"""The columns that store a schema's fields, in a file that stands alone.

In version 2.0 every field has a column, parents before children, in the order of the schema:

    a: int32                            column 0
    b: list                             column 1    offsets
        item: struct                    column 2    no data
            x: int32                    column 3
    c: struct, packed                   column 4    whole rows; x and y have no columns
        x: int32, y: int32

Early writers stored a string as a list of bytes, which takes two columns: offsets, then bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pennon.core.units import ColumnIndex, FieldId
from pennon.encoding.v2_0.encodings import List
from pennon.file.container.column_metadata import Column, Direct
from pennon.file.container.generation import FileSource
from pennon.file.v2_0.page_encoding import parse_page_encoding
from pennon.schema.field import Field

_PACKED_KEYS: Final = ("packed", "lance-encoding:packed")
VARIABLE_WIDTH: Final = frozenset(("string", "binary", "large_string", "large_binary"))


def is_packed(field: Field) -> bool:
    """Tell whether a struct asks to be stored as packed rows, in one column."""
    return field.logical_type == "struct" and any(
        field.metadata.get(key, b"").lower() == b"true" for key in _PACKED_KEYS
    )


def fields_with_columns(field: Field) -> Iterator[Field]:
    """Yield the fields that have a column, in the order of the columns."""
    yield field
    if not is_packed(field):
        for child in field.children:
            yield from fields_with_columns(child)


def columns_of_schema(file: FileSource) -> Mapping[FieldId, ColumnIndex]:
    """Return the column of each field of the file's own schema."""
    fields = [each for top in file.schema.fields for each in fields_with_columns(top)]
    if len(fields) == file.num_columns:
        return {field.id: ColumnIndex(number) for number, field in enumerate(fields)}
    return _with_early_strings(fields, file.columns())


def _with_early_strings(
    fields: list[Field], columns: list[Column]
) -> Mapping[FieldId, ColumnIndex]:
    """Return the columns where some strings take two."""
    found = {}
    number = 0
    for field in fields:
        found[field.id] = ColumnIndex(number)
        early = field.logical_type in VARIABLE_WIDTH and _begins_with_list(columns, number)
        number += 2 if early else 1
    return found


def _begins_with_list(columns: list[Column], number: int) -> bool:
    if number >= len(columns) or not columns[number].pages:
        return False
    encoding = columns[number].pages[0].encoding
    return isinstance(encoding, Direct) and isinstance(parse_page_encoding(encoding.data), List)
