"""The keys of the rows of a merge's source, numbered, so that rows of the table find theirs.

A key is the values of one or more columns; with a NULL among them it equals no other.  The distinct
values of each column are numbered, and so are the combinations that occur::

    column a     column b      key                  number
    7            'x'           (0, 0) = 0 * 2 + 0    0
    7            'y'           (0, 1) = 0 * 2 + 1    1
    9            'x'           (1, 0) = 1 * 2 + 0    2

A row of the table is looked up column by column: first its value, then the combination.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.large_columns import fitting_arrays
from pennon.errors import Breadcrumb, UnsupportedError

ABSENT: Final = -1
FAR: Final = 8
NEAR: Final = 1 << 16
"""Whole numbers lie close if they span no more than this, or so many times as many as they are."""


@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """Distinct values and their numbers.

    Those of whole numbers that lie close stand in ``table``, from ``least`` on: that is looked up
    several times faster than a hash table.
    """

    values: pa.Array[Any]
    least: int = 0
    table: Int64Array | None = None

    @classmethod
    def of(cls, values: pa.Array[Any]) -> _Values:
        if not len(values) or not _is_narrow(values.type):
            return cls(values)
        numbers = values.to_numpy().astype(np.int64)
        least, most = int(numbers.min()), int(numbers.max())
        if most - least >= max(FAR * len(values), NEAR) or max(-least, most) >= 1 << 62:
            return cls(values)
        table: Int64Array = np.full(most - least + 1, ABSENT, np.int64)
        table[numbers - least] = np.arange(len(values))
        return cls(values, least, table)

    def find_items(self, column: pa.Array[Any]) -> Int64Array:
        """Return the number of each value of a column, of a dictionary by its items."""
        if not isinstance(column, pa.DictionaryArray):
            return self.find(column)
        of_items = np.append(self.find(_hashable(column.dictionary)), ABSENT)
        return of_items[_codes(column.indices)]

    def find(self, column: pa.Array[Any]) -> Int64Array:
        """Return the number of each value, `ABSENT` if it is not there, or NULL."""
        if column.type != self.values.type:  # the same with offsets of 64 bits
            column = column.cast(self.values.type)
        if self.table is None:
            return _codes(pc.index_in(column, self.values, skip_nulls=True))
        places = column.fill_null(0).to_numpy().astype(np.int64) - self.least
        is_near = (places >= 0) & (places < len(self.table))
        if column.null_count:
            is_near &= column.is_valid().to_numpy(zero_copy_only=False)
        return np.where(is_near, self.table[np.where(is_near, places, 0)], ABSENT)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The values of one column, and the combinations with the columns before it, if there are any."""

    values: _Values
    combinations: pa.Array[Any] | None


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
        """Number the keys of rows; the columns are those of the key."""
        parts: list[_Part] = []
        numbers: Int64Array = np.zeros(len(columns[0]), np.int64)
        count = 0
        for column in columns:
            codes, distinct = _encoded(column)
            combinations = None
            if parts:
                combined = pa.array(_combine(numbers, codes, len(distinct)))
                both = pc.if_else(pc.equal(combined, ABSENT), None, combined).dictionary_encode()
                codes, combinations = _codes(both.indices), both.dictionary
            numbers = codes
            parts.append(_Part(_Values.of(distinct), combinations))
            count = len(distinct if combinations is None else combinations)
        order = np.argsort(numbers, kind="stable")[int((numbers < 0).sum()) :]
        counts = np.bincount(numbers[order], minlength=count)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(tuple(parts), order, starts, numbers)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def values(self) -> list[pa.Array[Any]]:
        """Return the distinct values of each column."""
        return [part.values.values for part in self.parts]

    def find(self, columns: Sequence[pa.ChunkedArray[Any]]) -> Int64Array:
        """Return the number of each row's key, `ABSENT` if the source does not have it."""
        numbers: Int64Array = np.zeros(len(columns[0]), np.int64)
        before = numbers
        for part, column in zip(self.parts, columns, strict=True):
            found = [part.values.find_items(each) for each in _arrays(column)]
            numbers = codes = np.concatenate([numbers[:0], *found])
            if part.combinations is not None:
                combined = pa.array(_combine(before, codes, len(part.values.values)))
                numbers = _codes(pc.index_in(combined, part.combinations))
            before = numbers
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


def _is_narrow(kind: pa.DataType) -> bool:
    """Tell whether values are whole numbers of up to 63 bits and a sign."""
    return bool(pa.types.is_integer(kind) and not pa.types.is_uint64(kind))


def check_key(name: str, kind: pa.DataType) -> None:
    """Raise UnsupportedError for a type whose values are not compared."""
    if pa.types.is_nested(kind):
        message = f"rows are not matched by columns of {kind}, only by plain values"
        raise UnsupportedError(message, where=Breadcrumb(column=name))


_WIDE: Final = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def _arrays(column: pa.ChunkedArray[Any] | pa.Array[Any]) -> Iterator[pa.Array[Any]]:
    """Yield a column in as few arrays as hold it, without extension types."""
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    for each in fitting_arrays(chunked):
        yield _hashable(each.storage if isinstance(each, pa.ExtensionArray) else each)


def _hashable(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return half floats as floats, since Arrow has no hash table of half floats; other arrays as they are."""
    return array.cast(pa.float32()) if pa.types.is_float16(array.type) else array


def _encoded(column: pa.ChunkedArray[Any]) -> tuple[Int64Array, pa.Array[Any]]:
    """Return a number for each value of a column, and the distinct values.

    Text that is too much for one array gets offsets of 64 bits.  Items of dictionaries are not written out.
    """
    arrays = list(_arrays(column))
    if pa.types.is_dictionary(arrays[0].type):
        return _encoded_items(pa.chunked_array(arrays).unify_dictionaries().chunks)
    if len(arrays) > 1:
        kind = arrays[0].type
        arrays = [pa.concat_arrays([each.cast(_WIDE.get(kind, kind)) for each in arrays])]
    encoded = arrays[0].dictionary_encode()
    return _codes(encoded.indices), encoded.dictionary


def _encoded_items(chunks: Sequence[pa.DictionaryArray]) -> tuple[Int64Array, pa.Array[Any]]:
    """Do the same for chunks of one dictionary, which may have equal and unused items."""
    items = _hashable(chunks[0].dictionary).dictionary_encode()
    of_items = np.append(_codes(items.indices), ABSENT)
    codes = np.concatenate([of_items[_codes(chunk.indices)] for chunk in chunks])
    used = np.unique(codes[codes >= 0])
    numbers = np.where(codes >= 0, np.searchsorted(used, codes), ABSENT)
    return numbers, items.dictionary.take(pa.array(used, pa.int64()))


def _codes(indices: pa.Array[Any]) -> Int64Array:
    codes: Int64Array = pc.fill_null(indices, ABSENT).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)


def _combine(numbers: Int64Array, codes: Int64Array, distinct: int) -> Int64Array:
    """Return a number for each pair, `ABSENT` where one of the two is."""
    return np.where((numbers >= 0) & (codes >= 0), numbers * distinct + codes, ABSENT)
