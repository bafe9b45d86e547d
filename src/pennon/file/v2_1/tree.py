"""A field as a tree whose leaves are columns.

In versions 2.1 and 2.2 only leaves have a column; how they nest stands in the levels of each of them::

    a: int32                            column 0
    b: list
        item: struct
            x: int32                    column 1
            y: string                   column 2
    c: struct, packed                   column 3    whole rows; x and y have no columns
        x: int32, y: int32
    d: struct without fields            column 4
    e: large_binary, blob               column 5    (or a struct of position and size: its description)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import ColumnIndex, FieldId
from pennon.errors import ArgumentError, Breadcrumb, FormatError
from pennon.file.container.generation import FileSource
from pennon.schema.arrow import storage_field
from pennon.schema.blob import describe_v2, with_blobs_v2
from pennon.schema.check import is_blob, is_packed
from pennon.schema.field import Field

Path: TypeAlias = tuple[Field, ...]
"""The fields from the top of a tree down to a leaf."""

LISTS = frozenset(("list", "list.struct", "large_list", "large_list.struct", "map"))
FIXED_SIZE_LIST = "fixed_size_list:"


def described(field: Field) -> Field:
    """Return a field as its columns have it: blobs of version 2 as their descriptions.

    A table's schema gives such a field the parts that a writer fills in (data, uri, position, size);
    its column holds packed rows that say where the values are, which may be other files.

    Source: ledger F-90.
    """
    return with_blobs_v2(field, describe_v2)


@dataclass(frozen=True, slots=True)
class Tree:
    """A field, its parts, and how many leaves it has; a leaf has itself.

    ``lead`` is the number of the leaf whose levels are believed about the structs and lists around:
    the first, unless that is a struct without fields, whose page has no levels of anything.
    """

    field: Field
    children: tuple[Tree, ...]
    leaves: int
    lead: int
    stored: pa.DataType
    """The Arrow type of the field without extension types."""

    @classmethod
    def of(cls, field: Field, column_of: Mapping[FieldId, int] | None = None) -> Tree:
        """Build the tree of a field; a field with a column of its own is a leaf, even with fields below it.

        Raises FormatError for fields below one whose type has none.
        """
        has_column = column_of is not None and column_of.get(field.id, -1) >= 0
        if has_column or not field.children or is_packed(field) or is_blob(field):
            return cls(field, (), 1, 0, storage_field(field).type)
        kind = field.logical_type
        if kind != "struct" and kind not in LISTS and not kind.startswith(FIXED_SIZE_LIST):
            message = f"a field of type {kind!r} with fields below it"
            raise FormatError(message, where=Breadcrumb(column=field.name))
        children = tuple(cls.of(child, column_of) for child in field.children)
        leaves = [leaf for child in children for leaf in child.paths()]
        lead = next((n for n, path in enumerate(leaves) if not is_bare(path[-1])), 0)
        return cls(field, children, len(leaves), lead, storage_field(field).type)

    def paths(self, above: Path = ()) -> Iterator[Path]:
        """Yield the way down to each leaf, in the order of the columns."""
        path = (*above, self.field)
        if not self.children:
            yield path
        for child in self.children:
            yield from child.paths(path)


def is_bare(field: Field) -> bool:
    """Tell whether a field is a struct without fields."""
    return field.logical_type == "struct" and not field.children


def dimension(field: Field) -> int:
    """Return how many items a fixed-size list of structs has; 1 for all other fields.

    Raises FormatError if the logical type does not say it.
    """
    if not field.logical_type.startswith(FIXED_SIZE_LIST) or not field.children:
        return 1
    text = field.logical_type.rpartition(":")[2]
    if not text.isdecimal() or not 0 < int(text) < 1 << 31:
        message = f"fixed-size list of {text} items"
        raise FormatError(message)
    return int(text)


def column_rows(path: Path) -> int:
    """Return how many rows of its column a row of the file is: the items of fixed-size lists.

    Within a list all items together are one row of the column.
    """
    rows = 1
    for field in path[:-1]:
        if field.logical_type in LISTS:
            break
        rows *= dimension(field)
    return rows


def columns_of_schema(file: FileSource) -> Mapping[FieldId, ColumnIndex]:
    """Return the column of each leaf of the file's own schema.

    Raises FormatError if the file has more or fewer columns.
    """
    try:
        paths = [path for top in file.schema.fields for path in Tree.of(top).paths()]
    except FormatError as error:
        raise error.located(Breadcrumb(file=file.source.path)) from None
    if len(paths) != file.num_columns:
        message = f"{file.num_columns} columns for a schema with {len(paths)} leaves"
        raise FormatError(message, where=Breadcrumb(file=file.source.path))
    return {path[-1].id: ColumnIndex(number) for number, path in enumerate(paths)}


def column_index(path: Path, column_of: Mapping[FieldId, int]) -> int:
    """Return the column of a leaf.  Raises ArgumentError if it has none in this file."""
    index = column_of.get(path[-1].id, -1)
    if index < 0:
        name = ".".join(field.name for field in path)
        message = f"field {name!r} (id {path[-1].id}) has no column in this file"
        raise ArgumentError(message)
    return index
