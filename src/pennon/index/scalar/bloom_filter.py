"""BLOOMFILTER: of each zone a filter that knows which values do not occur there.

``bloomfilter.lance`` has a row for each zone: ``fragment_id``, ``zone_start``, ``zone_length``, ``has_null`` and
``bloom_filter_data``, a split-block Bloom filter as Parquet's: blocks of eight words of 32 bits.  A value is hashed
by xxHash64 with seed 0, as it lies in an Arrow buffer, and sets one bit in each word of one block.

Its answer is the zones in which the value may occur.  Source: reference index-scalar, 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.errors import FormatError
from pennon.expr.tree import Call, Column, Expression, Literal
from pennon.index.base import VALUE, is_nan
from pennon.index.files import IndexFiles, whole_numbers
from pennon.index.row_set import UNKNOWN, Selection
from pennon.index.scalar.xxhash import xxhash64
from pennon.index.scalar.zones import Zones

_BLOCK: Final = 32
_SALT: Final = np.array(
    [
        0x47B6137B,
        0x44974D91,
        0x8824AD5B,
        0xA2B7289D,
        0x705495C7,
        0x2DF1424B,
        0x9EFC4947,
        0x5C6BFB31,
    ],
    np.uint64,
)
_MOST_VALUES: Final = 1000
"""Of more values nearly every zone has one."""


class BloomFilter:
    """An open BLOOMFILTER index."""

    def __init__(self, files: IndexFiles, column: pa.DataType) -> None:
        """Read the filters.  ``column``: the type of the table's column."""
        names = ["fragment_id", "zone_start", "zone_length", "has_null", "bloom_filter_data"]
        *numbers, nulls, filters = files.file("bloomfilter.lance").read(names)
        self._zones = Zones.of(*(whole_numbers(each, "zones") for each in numbers))
        self._has_null = np.asarray(nulls.to_numpy(zero_copy_only=False), np.bool_)
        self._filters = [_words(each.as_py()) for each in filters]
        self.column = Column((VALUE,), column)

    @property
    def size_bytes(self) -> int:
        """See `ScalarIndex.size_bytes`."""
        return sum(each.nbytes for each in self._filters)

    def search(self, condition: Expression) -> Selection:
        """See `ScalarIndex.search`."""
        if _asks_for_null(condition):
            return Selection.superset(self._zones.rows(np.flatnonzero(self._has_null)))
        values = values_of(condition)
        if values is None:
            return UNKNOWN
        hashes = [xxhash64(data) for value in values for data in _stored(value)]
        return Selection.superset(self._zones.rows(self._with_any(hashes)))

    def _with_any(self, hashes: list[int]) -> Int64Array:
        found = [
            at
            for at, words in enumerate(self._filters)
            if any(_may_have(words, each) for each in hashes)
        ]
        return np.array(found, np.int64)


def answers(condition: Expression) -> bool:
    """Return whether a condition asks for values, or for NULL."""
    return _asks_for_null(condition) or values_of(condition) is not None


def values_of(condition: Expression) -> list[pa.Scalar] | None:
    """Return the values one of which a column should have; None for another condition."""
    if not isinstance(condition, Call) or condition.function not in {"=", "IN"}:
        return None
    column = next((each for each in condition.arguments if isinstance(each, Column)), None)
    given = next((each for each in condition.arguments if isinstance(each, Literal)), None)
    if column is None or given is None or not given.value.is_valid:
        return None
    values = list(given.value.values) if condition.function == "IN" else [given.value]
    is_known = len(values) <= _MOST_VALUES and all(map(_is_plain, values))
    return values if is_known else None


def _asks_for_null(condition: Expression) -> bool:
    return (
        isinstance(condition, Call)
        and condition.function == "IS NULL"
        and isinstance(condition.arguments[0], Column)
    )


def _is_plain(value: pa.Scalar) -> bool:
    """Return whether just the bytes of a value, or of both zeros, are equal to it."""
    if not value.is_valid:
        return False
    if t.is_floating(value.type):
        return value.type != pa.float16() and not is_nan(value)
    is_text = t.is_string(value.type) or t.is_large_string(value.type)
    is_bytes = t.is_binary(value.type) or t.is_large_binary(value.type)
    is_number = t.is_integer(value.type) or t.is_temporal(value.type)
    return bool(is_text or is_bytes or (is_number and not t.is_duration(value.type)))


def _stored(value: pa.Scalar) -> Iterator[bytes]:
    """Yield the bytes that a value is hashed by: those of a zero with either sign."""
    if t.is_floating(value.type) and value.as_py() == 0:
        yield from (_bytes_of(pa.scalar(zero, value.type)) for zero in (0.0, -0.0))
    else:
        yield _bytes_of(value)


def _bytes_of(value: pa.Scalar) -> bytes:
    found: Any = value.as_py()
    if isinstance(found, str):
        return found.encode()
    if isinstance(found, bytes):
        return found
    buffer = pa.array([value]).buffers()[1]
    return bytes(buffer)[: value.type.bit_width // 8]


def _words(data: bytes | None) -> npt.NDArray[np.uint32]:
    """Return the words of a filter, a block a row; raises FormatError."""
    if not data or len(data) % _BLOCK:
        message = f"a Bloom filter of {len(data or b'')} bytes, which are no blocks of {_BLOCK}"
        raise FormatError(message)
    return np.frombuffer(data, "<u4").reshape(-1, 8)


def _may_have(words: npt.NDArray[np.uint32], hashed: int) -> bool:
    block = ((hashed >> 32) * len(words)) >> 32
    low = np.uint64(hashed & 0xFFFFFFFF)
    bits = ((low * _SALT) & np.uint64(0xFFFFFFFF)) >> np.uint64(27)
    return bool(((words[block] >> bits.astype(np.uint32)) & np.uint32(1)).all())
