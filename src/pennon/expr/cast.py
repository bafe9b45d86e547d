"""Casts, as SQL has them."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

Datum: TypeAlias = pa.Array | pa.Scalar


def cast(values: Datum, kind: pa.DataType) -> Datum:
    """Return ``values`` as another type.

    A timestamp without a zone is a time of the wall clock in the zone of the new type.  Numbers are
    cut towards 0.  Raises ArrowInvalid if a value does not fit.
    """
    if values.type == kind:
        return values
    if t.is_timestamp(kind) and kind.tz and not _has_zone(values.type):
        local = pc.cast(values, pa.timestamp(kind.unit))
        return pc.assume_timezone(local, kind.tz, ambiguous="earliest", nonexistent="earliest")
    if t.is_boolean(kind) and t.is_integer(values.type):
        return pc.not_equal(values, pa.scalar(0, values.type))
    if t.is_integer(kind) and t.is_floating(values.type):
        return _float_to_integer(values, kind)
    if t.is_decimal(values.type) and t.is_floating(kind):
        return pc.cast(pc.cast(values, pa.string()), kind)  # Arrow's own cast may be an ulp off
    if t.is_decimal(kind):
        return _to_decimal(values, kind)
    if t.is_string(values.type) and t.is_timestamp(kind):
        return _text_to_timestamp(values, kind)
    if t.is_timestamp(values.type) and (t.is_string(kind) or t.is_large_string(kind)):
        return _timestamp_to_text(values, kind)
    if t.is_temporal(kind):
        return pc.cast(values, options=pc.CastOptions(kind, allow_time_truncate=True))
    return pc.cast(values, kind)


def _to_decimal(values: Datum, kind: pa.DataType) -> Datum:
    """Round to the digits of ``kind``; integers need room for all of theirs on the way."""
    if t.is_integer(values.type):
        values = pc.cast(values, pa.decimal128(38, kind.scale))
    return pc.cast(values, options=pc.CastOptions(kind, allow_decimal_truncate=True))


def _text_to_timestamp(values: Datum, kind: pa.DataType) -> Datum:
    """Read times; one that names its distance from UTC is the time in UTC."""
    try:
        return pc.cast(values, kind)
    except pa.ArrowInvalid:
        if kind.tz is not None:
            raise
    return pc.cast(pc.cast(values, pa.timestamp(kind.unit, "UTC")), kind)


def _timestamp_to_text(values: Datum, kind: pa.DataType) -> Datum:
    """Write times as ``2020-01-31T23:59:58.5``, with no zero at the end of a fraction."""
    text = pc.replace_substring(pc.cast(values, kind), " ", "T", max_replacements=1)
    short = pc.replace_substring_regex(text, r"(\.\d*?)0+(Z|[+-]\d\d:?\d\d)?$", r"\1\2")
    return pc.replace_substring_regex(short, r"\.(Z|[+-]\d\d:?\d\d)?$", r"\1")


def _float_to_integer(values: Datum, kind: pa.DataType) -> Datum:
    return pc.cast(pc.trunc(values), kind)


def _has_zone(kind: pa.DataType) -> bool:
    return bool(t.is_timestamp(kind) and kind.tz)


def try_cast(values: Datum, kind: pa.DataType) -> Datum:
    """Do the same, but give NULL for values that do not fit."""
    try:
        return cast(values, kind)
    except pa.ArrowInvalid:
        if isinstance(values, pa.Scalar):
            return pa.scalar(None, kind)
    return pa.array([_cast_or_none(value, kind) for value in values], kind)


def _cast_or_none(value: pa.Scalar, kind: pa.DataType) -> object:
    try:
        return cast(value, kind).as_py()
    except pa.ArrowInvalid:
        return None


def fits_exactly(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar | None:
    """Return a literal as another type if it is the same value there, else None."""
    try:
        there = cast(value, kind)
        back = there if is_exact_by_nature(value.type, kind) else cast(there, value.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    same = is_exact_by_nature(value.type, kind) or back.equals(value)
    return there if same else None


def is_exact_by_nature(kind: pa.DataType, other: pa.DataType) -> bool:
    """Tell whether a literal of one type means whatever it becomes in the other.

    ``0.1`` is meant for a column of 32-bit floats as well, though it is another number there, and
    ``'2020-01-01'`` may be a date or the first moment of it.
    """
    both_float = t.is_floating(kind) and t.is_floating(other)
    is_time = t.is_string(kind) and t.is_temporal(other)
    return bool(both_float or is_time or t.is_null(kind))
