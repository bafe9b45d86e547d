"""Statistics of version 0.1: NULL count, least and greatest value of each page.

They are bounds, not values of the column: text is cut to 64 bytes, zeros get a sign, and pages of
NULLs have the bounds of their type.  Columns of numbers, booleans, days, text, bytes and decimals of
128 bits have them, also within structs; no others do.

    values of a page              least          greatest
    no values at all, integers    type's least   type's greatest
    no values at all, floats      -inf           inf              NaN counts as no value
    no values at all, text        NULL           NULL
    0.0, -0.0                     -0.0           0.0
    text longer than 64 bytes     cut            cut, and one more, NULL if there is no more

Source: seed 002, "Statistics"; rust/lance-file, previous/writer/statistics.rs; measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, Final, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import FieldId
from pennon.file.v0_1.text_bounds import text_bounds
from pennon.schema.arrow import storage_field
from pennon.schema.field import Field, Schema

Bounds: TypeAlias = "tuple[pa.Array[Any], pa.Array[Any]]"
"""The least and the greatest value of each row group."""

NULL_COUNT: Final = "null_count"
LEAST: Final = "min_value"
GREATEST: Final = "max_value"


@dataclass(slots=True)
class Collected:
    """The statistics of one field so far."""

    of: Field
    data_type: pa.DataType
    bounds_of: Callable[[pa.Array[Any], Int64Array], Bounds]
    null_counts: list[Int64Array] = field(default_factory=list)
    bounds: list[Bounds] = field(default_factory=list)

    def column(self) -> tuple[pa.Field[Any], pa.Array[Any]]:
        """Return the field and the array of the statistics, named by the field's id."""
        fields = [
            pa.field(NULL_COUNT, pa.int64(), nullable=False),
            pa.field(LEAST, self.data_type),
            pa.field(GREATEST, self.data_type),
        ]
        counts = pa.array(np.concatenate(self.null_counts))
        parts = [pa.concat_arrays(each) for each in zip(*self.bounds, strict=True)]
        array = pa.StructArray.from_arrays([counts, *parts], fields=fields)
        return pa.field(str(self.of.id), array.type, nullable=False), array


Measured: TypeAlias = "tuple[FieldId, Int64Array, Bounds]"
"""NULL counts and bounds of some pages of a field."""


@dataclass(slots=True)
class Statistics:
    """The statistics of a file while it is written, by field id.

    `look` only remembers rows; `measure` is what takes time, and any thread may do it.
    """

    fields: dict[FieldId, Collected]
    waiting: list[Callable[[], Measured]] = field(default_factory=list)

    @classmethod
    def of(cls, schema: Schema) -> Self:
        """Return those of the fields that have any."""
        found = {}
        for top in schema.fields:
            for each in _outside_of_lists(top):
                data_type = storage_field(each).type
                bounds_of = _bounds_of(data_type)
                if bounds_of is not None:
                    found[each.id] = Collected(each, data_type, bounds_of)
        return cls(found)

    def look(self, of: Field, array: pa.Array[Any], borders: Int64Array) -> None:
        """Take the rows of a field; row group g has the rows ``[borders[g], borders[g + 1])``."""
        collected = self.fields.get(of.id)
        if collected is not None:
            self.waiting.append(partial(_measure, of.id, collected.bounds_of, array, borders))

    def taken(self) -> list[Callable[[], Measured]]:
        """Return the measurements that are to be done, and forget them."""
        taken, self.waiting = self.waiting, []
        return taken

    def add(self, measured: Sequence[Measured]) -> None:
        """Take what was measured; in the order of the pages."""
        for field_id, null_counts, bounds in measured:
            self.fields[field_id].null_counts.append(null_counts)
            self.fields[field_id].bounds.append(bounds)

    def batch(self) -> pa.RecordBatch | None:
        """Return a column for each field, a row for each row group; None if no field has any."""
        if not self.fields:
            return None
        columns = [self.fields[each].column() for each in sorted(self.fields)]
        return pa.RecordBatch.from_arrays(
            [array for _, array in columns], schema=pa.schema([each for each, _ in columns])
        )


def _measure(
    field_id: FieldId,
    bounds_of: Callable[[pa.Array[Any], Int64Array], Bounds],
    array: pa.Array[Any],
    borders: Int64Array,
) -> Measured:
    return field_id, _null_counts(array, borders), bounds_of(array, borders)


def _outside_of_lists(of: Field) -> Sequence[Field]:
    if of.logical_type != "struct":
        return [of]
    return [each for child in of.children for each in _outside_of_lists(child)]


def _bounds_of(data_type: pa.DataType) -> Callable[[pa.Array[Any], Int64Array], Bounds] | None:
    """Return what finds the bounds of a type, None if it has no statistics."""
    if pa.types.is_boolean(data_type):
        return _bool_bounds
    if pa.types.is_integer(data_type) or pa.types.is_date(data_type):
        return _integer_bounds
    if data_type in (pa.float32(), pa.float64()):
        return _float_bounds
    if pa.types.is_decimal128(data_type):
        return _decimal_bounds
    if data_type in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        return text_bounds
    return None


def _null_counts(array: pa.Array[Any], borders: Int64Array) -> Int64Array:
    if not array.null_count:
        return np.zeros(len(borders) - 1, np.int64)
    missing = np.asarray(array.is_null().cast(pa.uint8()))
    return np.add.reduceat(missing.astype(np.int64), borders[:-1])


def _values(array: pa.Array[Any], dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the values as they lie in memory, and which are NULL if any is."""
    values = np.frombuffer(
        array.buffers()[1] or b"", dtype, len(array), array.offset * dtype.itemsize
    )
    return values, np.asarray(array.is_null()) if array.null_count else None


def _integer_bounds(array: pa.Array[Any], borders: Int64Array) -> Bounds:
    signed = "u" if pa.types.is_unsigned_integer(array.type) else "i"
    dtype = np.dtype(f"{signed}{array.type.bit_width // 8}")
    values, missing = _values(array, dtype)
    info = np.iinfo(dtype)
    low = values if missing is None else np.where(missing, info.max, values)
    high = values if missing is None else np.where(missing, info.min, values)
    least = np.minimum.reduceat(low, borders[:-1])
    greatest = np.maximum.reduceat(high, borders[:-1])
    empty = least > greatest
    least[empty], greatest[empty] = info.min, info.max
    return _typed(least.astype(dtype), array.type), _typed(greatest.astype(dtype), array.type)


def _float_bounds(array: pa.Array[Any], borders: Int64Array) -> Bounds:
    dtype = np.dtype(f"f{array.type.bit_width // 8}")
    values, missing = _values(array, dtype)
    unknown = np.isnan(values) if missing is None else np.isnan(values) | missing
    least = np.minimum.reduceat(np.where(unknown, np.inf, values), borders[:-1])
    greatest = np.maximum.reduceat(np.where(unknown, -np.inf, values), borders[:-1])
    empty = least > greatest
    least[empty], greatest[empty] = -np.inf, np.inf
    least[least == 0], greatest[greatest == 0] = -0.0, 0.0
    return _typed(least.astype(dtype), array.type), _typed(greatest.astype(dtype), array.type)


def _bool_bounds(array: pa.Array[Any], borders: Int64Array) -> Bounds:
    has_true = pc.fill_null(array, False)  # noqa: FBT003
    has_false = pc.fill_null(pc.invert(array), False)  # noqa: FBT003
    true = np.logical_or.reduceat(np.asarray(has_true), borders[:-1])
    false = np.logical_or.reduceat(np.asarray(has_false), borders[:-1])
    return pa.array(true & ~false), pa.array(true | ~false)


def _decimal_bounds(array: pa.Array[Any], borders: Int64Array) -> Bounds:
    """Return the bounds of decimals; those of no values are beyond any precision."""
    words, missing = _values(array, np.dtype("2i8"))
    least, greatest = (np.empty((len(borders) - 1, 2), np.int64) for _ in range(2))
    for group, (start, end) in enumerate(pairwise(borders.tolist())):
        part = words[start:end] if missing is None else words[start:end][~missing[start:end]]
        least[group] = _extreme(part, np.minimum) if len(part) else (0, np.iinfo(np.int64).min)
        greatest[group] = _extreme(part, np.maximum) if len(part) else (-1, np.iinfo(np.int64).max)
    return _typed(least, array.type), _typed(greatest, array.type)


def _extreme(words: np.ndarray, choose: np.ufunc) -> tuple[int, int]:
    """Return the (low, high) words of the least or greatest number of 128 bits."""
    low, high = words[:, 0], words[:, 1]
    found = choose.reduce(high)
    lowest = choose.reduce(low[high == found].view(np.uint64))
    return int(lowest.view(np.int64)), int(found)


def _typed(values: np.ndarray, data_type: pa.DataType) -> pa.Array[Any]:
    return pa.Array.from_buffers(data_type, len(values), [None, pa.py_buffer(values)])
