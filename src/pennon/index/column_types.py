"""The types of the columns in files of indices, checked before their values are used.

Columns of the table's values (``values``, ``min``, ``max``, ``keys``) have the type of the indexed column;
`check_values` compares them.  Columns that are not listed here are checked where they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as t

from pennon.errors import FormatError
from pennon.schema.types import storage_type


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The values that a column may hold: types that fit, and whether a value may be NULL."""

    words: str
    fits: Callable[[pa.DataType], bool]
    has_nulls: bool = False


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(t.is_binary(kind) or t.is_large_binary(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(t.is_string(kind) or t.is_large_string(kind))


def _is_list(of: Callable[[pa.DataType], bool]) -> Callable[[pa.DataType], bool]:
    return lambda kind: bool(t.is_list(kind) and of(kind.value_type))


def _is_number(kind: pa.DataType) -> bool:
    return bool(t.is_integer(kind) or t.is_floating(kind))


def _is_uint32(kind: pa.DataType) -> bool:
    return bool(t.is_unsigned_integer(kind) and kind.bit_width <= _COUNT_BITS)


_COUNT_BITS: Final = 32
_NUMBERS: Final = ColumnType("unsigned integers", t.is_unsigned_integer)
_COUNTS: Final = ColumnType("unsigned integers of 32 bits", _is_uint32)
_BYTES: Final = ColumnType("bytes", _is_bytes)
_ANY_NUMBERS: Final = ColumnType("numbers", _is_number)
_TYPES: Final[Mapping[str, ColumnType]] = {
    "null_count": _COUNTS,
    "nan_count": _COUNTS,
    "page_idx": _COUNTS,
    "fragment_id": _NUMBERS,
    "zone_start": _NUMBERS,
    "zone_length": _NUMBERS,
    "has_null": ColumnType("booleans", t.is_boolean),
    "bloom_filter_data": _BYTES,
    "bitmaps": ColumnType("bytes", _is_bytes, has_nulls=True),
    "tokens": ColumnType("unsigned integers of 32 bits", _is_uint32, has_nulls=True),
    "posting_list": _BYTES,
    "_token": ColumnType("texts", _is_text),
    "_token_id": _COUNTS,
    "_token_fst_bytes": _BYTES,
    "_posting": ColumnType("lists of bytes", _is_list(_is_bytes)),
    "_length": _COUNTS,
    "_frequency": _ANY_NUMBERS,
    "_position": ColumnType("lists", t.is_list, has_nulls=True),
    "_compressed_position": ColumnType("bytes", _is_bytes, has_nulls=True),
    "_position_block_offset": ColumnType("lists of numbers", _is_list(t.is_unsigned_integer)),
    "__add_factors": _ANY_NUMBERS,
    "__scale_factors": _ANY_NUMBERS,
    "__error_factors": _ANY_NUMBERS,
}


def check_column(path: str, name: str, values: pa.Array[Any]) -> None:
    """Raise FormatError for values that a column of an index's file cannot have."""
    expected = _TYPES.get(name)
    if expected is None:
        return
    if not expected.fits(values.type):
        message = f"{path}: column {name!r} holds {values.type}, and not {expected.words}"
        raise FormatError(message)
    if values.null_count and not expected.has_nulls:
        message = f"{path}: column {name!r} has {values.null_count} NULLs, where none may be"
        raise FormatError(message)


def check_values(path: str, name: str, kind: pa.DataType, column: pa.DataType) -> None:
    """Raise FormatError unless values of an index have the type of the indexed column."""
    if kind != storage_type(column):
        message = f"{path}: column {name!r} holds {kind}, and the indexed column {column}"
        raise FormatError(message)
