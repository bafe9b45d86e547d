"""Types of expressions: the names that SQL has for them, and what two of them have in common."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as t

from pennon.errors import ArgumentError

MOST_DIGITS = 38

BY_NAME: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINT": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "CHAR": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "DATETIME": pa.timestamp("us"),
}
"""Types by sqlglot's names for them; decimals and timestamps may have parameters besides."""

UNITS = ("s", "ms", "us", "ns")
TIMESTAMP_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}


def is_number(kind: pa.DataType) -> bool:
    """Tell whether values are integers, floats or decimals."""
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind))


def is_text(kind: pa.DataType) -> bool:
    """Tell whether values are strings."""
    return bool(t.is_string(kind) or t.is_large_string(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Tell whether values are byte strings."""
    return bool(t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind))


def is_list(kind: pa.DataType) -> bool:
    """Tell whether values are lists."""
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of values that are stored as a dictionary or an extension."""
    if t.is_dictionary(kind):
        return plain(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return plain(kind.storage_type)
    return kind


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type in which values of both compare and add up.

    Raises ArgumentError if they have none.
    """
    if left == right or t.is_null(right):
        return left
    if t.is_null(left):
        return right
    for find in (_numbers, _texts, _times):
        found = find(left, right) or find(right, left)
        if found is not None:
            return found
    message = f"values of {left} and {right} do not go together; cast one of them"
    raise ArgumentError(message)


def _numbers(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if not (is_number(left) and is_number(right)):
        return None
    if t.is_floating(left) or t.is_floating(right):
        widest = max(kind.bit_width for kind in (left, right) if t.is_floating(kind))
        return {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}[widest]
    if t.is_decimal(left) or t.is_decimal(right):
        return _decimals(as_decimal(left), as_decimal(right))
    return _integers(left, right)


def _integers(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    signs = t.is_signed_integer(left), t.is_signed_integer(right)
    if signs[0] == signs[1]:
        return left if left.bit_width >= right.bit_width else right
    signed, unsigned = (left, right) if signs[0] else (right, left)
    if unsigned.bit_width == 64:
        return pa.decimal128(20, 0)
    bits = max(signed.bit_width, unsigned.bit_width * 2)
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """Return the decimal type that holds every value of an integer or decimal type."""
    if t.is_decimal(kind):
        return kind
    return pa.decimal128({8: 3, 16: 5, 32: 10, 64: 20}[kind.bit_width], 0)


def _decimals(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale) + scale
    if digits <= MOST_DIGITS:
        return pa.decimal128(digits, scale)
    return pa.decimal256(min(digits, 76), scale)


def _texts(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if is_text(left) and is_text(right):
        return pa.large_string()
    if is_bytes(left) and is_bytes(right):
        return pa.large_binary()
    return None


def _times(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if t.is_date(left) and t.is_date(right):
        return pa.date64()
    if t.is_timestamp(left) and t.is_date(right):
        return left
    if t.is_timestamp(left) and t.is_timestamp(right):
        return pa.timestamp(_finer(left.unit, right.unit), left.tz or right.tz)
    if t.is_duration(left) and t.is_duration(right):
        return pa.duration(_finer(left.unit, right.unit))
    if t.is_time(left) and t.is_time(right):
        return pa.time64("ns")
    return None


def _finer(left: str, right: str) -> str:
    return max(left, right, key=UNITS.index)
