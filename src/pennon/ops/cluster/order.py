"""The order that rows are put in: that of some columns, or along a Z-curve through them.  Pure.

A Z-curve treats all columns alike.  Each value becomes the number of its quantile among those of a sample,
and the bits of these numbers take turns::

    a = 5 of 8 quantiles    1   0   1
    b = 3 of 8 quantiles      0   1   1       ->  100111, a whole number to sort by

So rows that are close in all columns come to lie close together, and a value that a quarter of the rows have
takes up a quarter of the numbers.  NULLs come first, and floats are in total order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.errors import ArgumentError
from pennon.expr.evaluate import evaluate
from pennon.expr.tree import Column
from pennon.scan.plan.query import ColumnOrdering
from pennon.scan.read.arrays import int64_array
from pennon.scan.run.sort import sort_indices, sort_keys, total_order
from pennon.schema.field import Schema

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

ADDRESS: Final = "\0address"
"""Where a row lies in the table: the last key, so that no two rows are equal."""
_CURVE: Final = "\0curve"
_MOST_BITS: Final = 10
"""Of the number of a column's quantile: 1,024 of them, as many as Delta makes."""
_CURVE_BITS: Final = 63


@dataclass(frozen=True, slots=True)
class RowOrder:
    """By which columns rows are ordered; it pickles.

    ``quantiles`` of each column make it a Z-curve; without any, the first column goes before the second.
    """

    columns: tuple[Column, ...]
    quantiles: tuple[pa.Array[Any], ...] = ()

    @classmethod
    def by(cls, schema: Schema, names: Sequence[str]) -> RowOrder:
        """Return the order by some columns, or fields inside structs (``a.b``).

        Raises ArgumentError for no column, one that is not there or is named twice, UnsupportedError for
        one without an order.
        """
        if not names or len(set(names)) != len(names):
            message = f"rows are ordered by at least one column, each named once, got {list(names)}"
            raise ArgumentError(message)
        keys = sort_keys(schema, [ColumnOrdering(name) for name in names])
        return cls(tuple(key for key in keys.values() if isinstance(key, Column)))

    def curved(self, sample: pa.Table) -> RowOrder:
        """Return the order along a Z-curve, given `values` of some rows."""
        bits = min(_MOST_BITS, _CURVE_BITS // len(self.columns))
        if not bits:
            message = (
                f"a Z-curve goes through {_CURVE_BITS} columns at most, not {len(self.columns)}"
            )
            raise ArgumentError(message)
        columns = [sorted_rows(sample.select([name])) for name in self._names]
        points = (_evenly(column, (1 << bits) - 1).column(0) for column in columns)
        return replace(self, quantiles=tuple(map(_one, points)))

    @property
    def _names(self) -> list[str]:
        return [f"\0key {number}" for number in range(len(self.columns))]

    def values(self, batch: pa.RecordBatch) -> pa.Table:
        """Return what the columns hold, as it sorts, and the addresses of the rows."""
        found = [_one(total_order(_chunked(evaluate(each, batch)))) for each in self.columns]
        return pa.table([*found, batch.column(ADDRESS)], [*self._names, ADDRESS])

    def keys(self, values: pa.Table) -> pa.Table:
        """Return the columns that rows of these `values` are sorted by, the first one first."""
        if not self.quantiles:
            return values
        numbers = [
            count_below(values.select([name]), pa.table({name: known})).astype(np.uint64)
            for name, known in zip(self._names, self.quantiles, strict=True)
        ]
        bits = (len(self.quantiles[0]) + 1).bit_length() - 1
        curve = int64_array(_interleaved(numbers, bits).astype(np.int64))
        return pa.table([curve, values.column(ADDRESS)], [_CURVE, ADDRESS])


def cut_points(keys: pa.Table, pieces: int) -> pa.Table:
    """Return the keys that cut rows into ``pieces`` of about as many, given those of a sample."""
    return _evenly(sorted_rows(keys), pieces - 1)


def sorted_rows(keys: pa.Table) -> pa.Table:
    """Return keys in their order."""
    return keys.take(int64_array(order_of(keys)))


def order_of(keys: pa.Table) -> Int64Array:
    """Return the numbers of rows in the order of their keys; equal ones stay as they are."""
    by = [(name, "ascending", "at_start") for name in keys.column_names]
    return np.asarray(sort_indices(keys, by), np.int64)


def count_below(keys: pa.Table, points: pa.Table) -> Int64Array:
    """Return for each row how many of the points, which are sorted, do not come after it."""
    order = order_of(pa.concat_tables([points, keys]))
    is_point = order < points.num_rows
    below = np.empty(keys.num_rows, np.int64)
    below[order[~is_point] - points.num_rows] = np.cumsum(is_point)[~is_point]
    return below


def _evenly(rows: pa.Table, count: int) -> pa.Table:
    """Return ``count`` rows at even distances, without both ends; some twice if there are too few."""
    if not rows.num_rows:
        return rows
    at = np.arange(1, count + 1) * rows.num_rows // (count + 1)
    return rows.take(int64_array(at.astype(np.int64)))


def _interleaved(numbers: Sequence[Numbers], bits: int) -> Numbers:
    """Return numbers whose bits are those of the given ones, in turns, the highest first."""
    curve = np.zeros(len(numbers[0]), np.uint64)
    one = np.uint64(1)
    for bit in reversed(range(bits)):
        for each in numbers:
            curve = (curve << one) | ((each >> np.uint64(bit)) & one)
    return curve


def _chunked(array: pa.Array[Any]) -> pa.ChunkedArray[Any]:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return pa.chunked_array(
        [array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array]
    )


def _one(values: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """Return values in one piece."""
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.nulls(0, values.type)
