"""The keys of the rows of a merge's source, numbered, so that rows of the table find theirs.

A key is the values of one or more columns; with a NULL among them it equals no other.  The distinct
values of each column are numbered, and so are the combinations that occur::

    column a     column b      key                  number
    7            'x'           (0, 0) = 0 * 2 + 0    0
    7            'y'           (0, 1) = 0 * 2 + 1    1
    9            'x'           (1, 0) = 1 * 2 + 0    2

A row of the table is looked up column by column, with a hash table of the values of each; its
combination by binary search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import Breadcrumb, UnsupportedError
from pennon.ranges import Int64Array

ABSENT = -1


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The values of one column, and the combinations with the columns before it, sorted."""

    values: pa.Array[Any]
    combinations: Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """The distinct keys of a source; it pickles."""

    parts: tuple[_Part, ...]
    order: Int64Array
    """The rows of the source that have a key, those of key 0 first."""
    starts: Int64Array
    """Where the rows of each key begin in `order`; one more than there are keys."""
    numbers: Int64Array
    """The number of each row's key, `ABSENT` for rows without one."""

    @classmethod
    def of(cls, columns: Sequence[pa.ChunkedArray[Any]]) -> Keys:
        """Number the keys of rows; the columns are those of the key, and have no dictionaries."""
        parts = []
        numbers: Int64Array = np.zeros(len(columns[0]), np.int64)
        for column in columns:
            encoded = _one_array(column).dictionary_encode()
            codes = _codes(encoded.indices)
            combined = _combine(numbers, codes, len(encoded.dictionary))
            combinations, inverse = np.unique(combined[combined >= 0], return_inverse=True)
            numbers = np.full(len(combined), ABSENT, np.int64)
            numbers[combined >= 0] = inverse
            parts.append(_Part(encoded.dictionary, combinations))
        order = np.argsort(numbers, kind="stable")[int((numbers < 0).sum()) :]
        counts = np.bincount(numbers[order], minlength=len(parts[-1].combinations))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(tuple(parts), order, starts, numbers)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def find(self, columns: Sequence[pa.ChunkedArray[Any]]) -> Int64Array:
        """Return the number of each row's key, `ABSENT` if the source does not have it."""
        numbers: Int64Array = np.zeros(len(columns[0]), np.int64)
        for part, column in zip(self.parts, columns, strict=True):
            codes = _codes(pc.index_in(_one_array(column), part.values, skip_nulls=True))
            combined = _combine(numbers, codes, len(part.values))
            numbers = _search(part.combinations, combined)
        return numbers

    def pairs(self, numbers: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return each row that has a key here, with each row of the source that has the same.

        The first array holds places in ``numbers``, the second rows of the source.
        """
        rows = np.flatnonzero(numbers >= 0)
        keys = numbers[rows]
        counts = self.starts[keys + 1] - self.starts[keys]
        firsts = np.repeat(self.starts[keys] - (np.cumsum(counts) - counts), counts)
        return np.repeat(rows, counts), self.order[firsts + np.arange(int(counts.sum()))]


def check_key(name: str, kind: pa.DataType) -> None:
    """Raise UnsupportedError for a type whose values are not compared."""
    if pa.types.is_nested(kind):
        message = f"rows are not matched by columns of {kind}, only by plain values"
        raise UnsupportedError(message, where=Breadcrumb(column=name))


def _one_array(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """Return a column as one array of plain values, as which keys are compared."""
    found: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)
    if isinstance(found, pa.ExtensionArray):
        found = found.storage
    if isinstance(found, pa.DictionaryArray):
        found = found.dictionary_decode()
    plain: pa.Array[Any] = found
    return plain


def _codes(indices: pa.Array[Any]) -> Int64Array:
    codes: Int64Array = pc.fill_null(indices, ABSENT).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)


def _combine(numbers: Int64Array, codes: Int64Array, distinct: int) -> Int64Array:
    """Return a number for each pair, `ABSENT` where one of the two is."""
    return np.where((numbers >= 0) & (codes >= 0), numbers * distinct + codes, ABSENT)


def _search(sorted_values: Int64Array, wanted: Int64Array) -> Int64Array:
    """Return where values are, `ABSENT` for those that are not there."""
    if not len(sorted_values):
        return np.full(len(wanted), ABSENT, np.int64)
    at = np.minimum(np.searchsorted(sorted_values, wanted), len(sorted_values) - 1)
    return np.where(sorted_values[at] == wanted, at, ABSENT)
