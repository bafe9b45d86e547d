"""A field put together from what the data files of a fragment have of it.

A file may hold a part of a struct only: rows were appended without one of its fields, or a field was
added to it later, in another file::

    the table       s: struct<x, y>        the file    s: struct<x>       y reads as NULL

What nests around a value stands beside every value (in versions 2.1 and 2.2), so each file tells
which structs are NULL, and where lists begin and end; of several files the first one is believed.
Lists that are NULL in no file must be of one length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import FieldId
from pennon.errors import FormatError
from pennon.schema.arrow import field_to_arrow
from pennon.schema.check import is_packed
from pennon.schema.field import Field

Piece: TypeAlias = "tuple[Field, pa.Array[Any]]"
"""What one file has of a field, and the values."""

_JOINED = ("struct", "list", "list.struct", "large_list", "large_list.struct")


def with_whole_packed(field: Field, known: Mapping[FieldId, Field]) -> Field:
    """Return a field with all fields of its packed structs, as the table has them: they are one column."""
    if not field.children:
        return field
    if is_packed(field):
        return known.get(field.id, field)
    children = tuple(with_whole_packed(child, known) for child in field.children)
    return field if children == field.children else replace(field, children=children)


def is_split_within(parts: Sequence[Field]) -> bool:
    """Tell whether several files have parts of what is neither a struct nor a list, such as a map.

    These are not joined.
    """
    if len(parts) < 2:
        return False
    if parts[0].logical_type not in _JOINED:
        return True
    children: dict[FieldId, list[Field]] = {}
    for part in parts:
        for child in part.children:
            children.setdefault(child.id, []).append(child)
    return any(is_split_within(found) for found in children.values())


def join(field: Field, pieces: Sequence[Piece]) -> pa.Array[Any]:
    """Return the values of a field from its pieces; there is at least one.

    What no piece has is NULL.  Raises FormatError if the pieces are not of one length.
    """
    held, values = pieces[0]
    if held == field:
        return values
    if len({len(array) for _, array in pieces}) > 1:
        message = f"the parts of column {field.name!r} have not the same number of rows"
        raise FormatError(message)
    if field.logical_type == "struct":
        return _join_struct(field, pieces)
    return _widen_list(field, held, values) if len(pieces) == 1 else _join_lists(field, pieces)


def _join_struct(field: Field, pieces: Sequence[Piece]) -> pa.Array[Any]:
    rows = len(pieces[0][1])
    children = []
    for child in field.children:
        found = [
            (part, array.field(number))
            for held, array in pieces
            for number, part in enumerate(held.children)
            if part.id == child.id
        ]
        children.append(join(child, found) if found else _nulls(child, rows))
    first: Any = pieces[0][1]
    mask = first.is_null() if first.null_count else None
    fields = [field_to_arrow(child) for child in field.children]
    joined: pa.Array[Any] = pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    return joined


def _widen_list(field: Field, held: Field, values: Any) -> pa.Array[Any]:
    """Return a list with items that have all fields."""
    shown = field_to_arrow(field).type
    items = join(field.children[0], [(held.children[0], values.values)])
    buffers = values.buffers()[: 1 if pa.types.is_fixed_size_list(shown) else 2]
    widened: pa.Array[Any] = pa.Array.from_buffers(
        shown, len(values), buffers, values.null_count, values.offset, children=[items]
    )
    return widened


def _join_lists(field: Field, pieces: Sequence[Piece]) -> pa.Array[Any]:
    """Return lists whose items have parts in several files."""
    first: Any = pieces[0][1]
    items = [(held.children[0], _items(field, values, first)) for held, values in pieces]
    lengths = _lengths(first)
    shown = field_to_arrow(field).type
    is_large = pa.types.is_large_list(shown)
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int64() if is_large else pa.int32())
    mask = first.is_null() if first.null_count else None
    make: Any = pa.LargeListArray if is_large else pa.ListArray
    children = join(field.children[0], items)
    joined: pa.Array[Any] = make.from_arrays(offsets, children, type=shown, mask=mask)
    return joined


def _items(field: Field, values: Any, first: Any) -> pa.Array[Any]:
    """Return the items of lists, as many as there are in the first file.

    A list that is NULL here but not there has NULL items: who adds a part of a column to rows that are
    deleted writes NULLs.  Raises FormatError for lists of different lengths.
    """
    mine, lengths = _lengths(values), _lengths(first)
    items: pa.Array[Any] = values.flatten()
    differs = mine != lengths
    if not differs.any():
        return items
    is_null = _is_null(values) | _is_null(first)
    if np.any(differs & ~is_null):
        message = f"the parts of column {field.name!r} have lists of different lengths"
        raise FormatError(message)
    shifts = (np.cumsum(mine) - mine) - (np.cumsum(lengths) - lengths)
    places = np.arange(lengths.sum()) + np.repeat(shifts, lengths)
    return items.take(pa.array(places, mask=np.repeat(differs, lengths)))


def _lengths(lists: Any) -> Int64Array:
    """Return the lengths of lists, 0 for NULL."""
    lengths: Any = lists.value_lengths().fill_null(0)
    numbers: Int64Array = lengths.to_numpy().astype(np.int64, copy=False)
    return numbers


def _is_null(values: Any) -> npt.NDArray[np.bool_]:
    is_null: npt.NDArray[np.bool_] = values.is_null().to_numpy(zero_copy_only=False)
    return is_null


def _nulls(field: Field, rows: int) -> pa.Array[Any]:
    found: pa.Array[Any] = pa.nulls(rows, field_to_arrow(field).type)
    return found
