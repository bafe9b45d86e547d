"""Casts, as SQL has them."""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.core.numpy_types import numpy_dtype
from pennon.expr.types import is_bytes, is_list, is_text

Datum: TypeAlias = pa.Array | pa.Scalar


def cast(values: Datum, kind: pa.DataType) -> Datum:
    """Return ``values`` as another type.

    A timestamp without a zone is a time of the wall clock in the zone of the new type.  Numbers are
    cut towards 0.  Raises ArrowInvalid if a value does not fit.
    """
    if values.type == kind:
        return values
    if t.is_float16(values.type):
        return _half_to_text(values, kind) if is_text(kind) else cast(widened(values), kind)
    if t.is_timestamp(kind):
        return _to_timestamp(values, kind)
    if t.is_decimal(kind):
        return _to_decimal(values, kind)
    if t.is_string(kind) or t.is_large_string(kind):
        return _to_text(values, kind)
    if t.is_temporal(kind):
        return _to_time(values, kind)
    if t.is_temporal(values.type):
        values = pc.cast(values, _counts(values.type))
        return values if values.type == kind else _to_number(values, kind)
    return _to_number(values, kind)


def _to_time(values: Datum, kind: pa.DataType) -> Datum:
    """Return dates, times of day or durations."""
    if t.is_time(kind) and is_text(values.type):
        return _text_to_time(values, kind)
    if t.is_integer(values.type):  # Arrow casts integers of the type's own width alone
        values = pc.cast(values, _counts(kind))
        if t.is_date64(kind):  # milliseconds of whole days
            values = pc.cast(values, pa.timestamp("ms"))
    return pc.cast(values, options=pc.CastOptions(kind, allow_time_truncate=True))


def _counts(kind: pa.DataType) -> pa.DataType:
    """Return the integer that a date, a time or a duration is: days, or units of time."""
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def widened(values: Datum) -> Datum:
    """Return half floats as 32-bit floats, with which Arrow computes; others as they are."""
    return pc.cast(values, pa.float32()) if t.is_float16(values.type) else values


def _half_to_text(values: Datum, kind: pa.DataType) -> Datum:
    """Write half floats as pylance does: without an exponent, and without a point where they are whole."""
    if isinstance(values, pa.Scalar):
        return _half_to_text(pa.array([values.as_py()], pa.float16()), kind)[0]
    wide = widened(values).to_numpy(zero_copy_only=False)
    texts = ["NaN" if np.isnan(n) else np.format_float_positional(n, trim="-") for n in wide]
    return pa.array(texts, kind, mask=np.asarray(values.is_null()))


def _to_number(values: Datum, kind: pa.DataType) -> Datum:
    if t.is_boolean(kind) and t.is_integer(values.type):
        return pc.not_equal(values, pa.scalar(0, values.type))
    if t.is_integer(kind) and t.is_floating(values.type):
        return pc.cast(pc.trunc(values), kind)
    if t.is_decimal(values.type) and t.is_floating(kind):
        return pc.cast(pc.cast(values, pa.string()), kind)  # Arrow's own cast may be an ulp off
    if t.is_decimal(values.type) and t.is_integer(kind):
        return pc.cast(values, options=pc.CastOptions(kind, allow_decimal_truncate=True))
    if t.is_integer(values.type) and t.is_floating(kind):
        return pc.cast(values, kind, safe=False)  # the float that is next to it
    return pc.cast(values, kind)


def _to_timestamp(values: Datum, kind: pa.DataType) -> Datum:
    if kind.tz and t.is_timestamp(values.type) and not values.type.tz:
        return _in_zone(cast(values, pa.timestamp(kind.unit)), kind)
    if t.is_string(values.type) or t.is_large_string(values.type):
        return _text_to_timestamp(values, kind)
    return pc.cast(values, options=pc.CastOptions(kind, allow_time_truncate=True))


def _to_decimal(values: Datum, kind: pa.DataType) -> Datum:
    """Round to the digits of ``kind``, halves away from 0.

    Raises ArrowInvalid if a number is too large for it.
    """
    if t.is_integer(values.type):  # which need room for all of their digits on the way
        values = pc.cast(values, pa.decimal128(38, min(kind.scale, 18)))
    elif t.is_floating(values.type) and not _all(pc.is_finite(values)):
        message = f"NaN and infinity are no {kind}"
        raise pa.ArrowInvalid(message)
    if t.is_decimal(values.type):
        values = _fitting(values, kind)
    found = pc.cast(values, options=pc.CastOptions(kind, allow_decimal_truncate=True))
    if is_text(values.type):
        found.validate(full=True)  # Arrow looks at the digits of some texts only
    return found


def _fitting(values: Datum, kind: pa.DataType) -> Datum:
    """Return decimals with no more digits behind the point than ``kind`` has."""
    if values.type.scale > kind.scale:
        values = pc.round(values, kind.scale, round_mode="half_towards_infinity")
    digits = kind.precision - kind.scale
    if digits < values.type.precision - values.type.scale:
        limit = pa.scalar(Decimal(10) ** digits, values.type)
        if not _all(pc.less(pc.abs(values), limit)):
            message = f"a number has more digits than {kind}"
            raise pa.ArrowInvalid(message)
    return values


def _all(conditions: Datum) -> bool:
    """Tell whether none is false."""
    if isinstance(conditions, pa.Scalar):
        return conditions.as_py() is not False
    return bool(pc.all(conditions, min_count=0).as_py())


def _to_text(values: Datum, kind: pa.DataType) -> Datum:
    if t.is_timestamp(values.type):
        return _timestamp_to_text(values, kind)
    if t.is_floating(values.type):
        return _float_to_text(values, kind)
    if is_list(values.type):
        return _list_to_text(values, kind)
    return pc.cast(values, kind)


def _list_to_text(values: Datum, kind: pa.DataType) -> Datum:
    """Write lists as ``[1, 2]``; nothing stands for NULL, hexadecimal digits for bytes."""
    if isinstance(values, pa.Scalar):
        return _list_to_text(pa.repeat(values, 1), kind)[0]
    items = pc.list_flatten(values)
    if is_bytes(items.type):
        texts = pa.array([each.as_py() and each.as_py().hex() for each in items], pa.string())
    else:
        texts = cast(items, pa.string())
    lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pc.fill_null(texts, ""))
    found = pc.binary_join_element_wise("[", pc.binary_join(lists, ", "), "]", "")
    return pc.cast(pc.if_else(values.is_valid(), found, pa.scalar(None, pa.string())), kind)


def _float_to_text(values: Datum, kind: pa.DataType) -> Datum:
    """Write floats with a point and the fewest digits that tell them apart: ``1.0``, ``1e16``."""
    text = pc.cast(values, kind)
    is_whole = pc.match_substring_regex(text, r"^-?\d+$")
    text = pc.if_else(is_whole, pc.binary_join_element_wise(text, pa.scalar(".0", kind), ""), text)
    text = pc.replace_substring_regex(text, "^-?nan$", "NaN")
    size = pc.abs(values)
    is_odd = pc.or_(pc.greater(size, 1e9), pc.and_(pc.greater(size, 0.0), pc.less(size, 1e-3)))
    odd = pc.and_(is_odd, pc.is_finite(values))  # where Arrow's forms are others
    if isinstance(text, pa.Scalar):
        return pa.scalar(_float_text(values), kind) if odd.as_py() else text
    written = [_float_text(each) for each in values.filter(odd)]
    return pc.replace_with_mask(text, pc.fill_null(odd, False), pa.array(written, kind))  # noqa: FBT003


def _float_text(value: pa.Scalar) -> str:
    """Return a finite number: with an exponent if it is very large or small."""
    number = numpy_dtype(value.type).type(value.as_py())
    short = np.format_float_scientific(number, trim="-", exp_digits=1).replace("e+", "e")
    least, most = (-5, 15) if t.is_float64(value.type) else (-6, 12)
    if least <= int(short.rpartition("e")[2]) <= most:
        return np.format_float_positional(number, trim="0")
    return short


def _text_to_timestamp(values: Datum, kind: pa.DataType) -> Datum:
    """Read times; one that names its distance from UTC is that moment, others are wall clocks'."""
    local, utc = pa.timestamp(kind.unit), pa.timestamp(kind.unit, "UTC")
    try:
        found = pc.cast(values, local)
    except pa.ArrowInvalid:
        return pc.cast(pc.cast(values, utc), kind)
    return _in_zone(found, kind) if kind.tz else found


def _text_to_time(values: Datum, kind: pa.DataType) -> Datum:
    """Read times of day; raises ArrowInvalid for one with a finer fraction than ``kind`` has."""
    day, nothing = pa.scalar("1970-01-01T", values.type), pa.scalar("", values.type)
    moments = pc.cast(pc.binary_join_element_wise(day, values, nothing), pa.timestamp("ns"))
    return pc.cast(pc.cast(pc.cast(moments, pa.int64()), pa.time64("ns")), kind)


def _in_zone(local: Datum, kind: pa.DataType) -> Datum:
    """Return the moments of a wall clock in the zone of ``kind``."""
    return pc.assume_timezone(local, kind.tz, ambiguous="earliest", nonexistent="earliest")


def _timestamp_to_text(values: Datum, kind: pa.DataType) -> Datum:
    """Write times as ``2020-01-31T23:59:58.500``: 3, 6 or 9 digits of a fraction, if there is one."""
    text = pc.replace_substring(pc.cast(values, kind), " ", "T", max_replacements=1)
    short = pc.replace_substring_regex(text, r"\.((?:\d{3})*?)(?:000)+(Z|[+-].*)?$", r".\1\2")
    whole = pc.replace_substring_regex(short, r"\.(Z|[+-].*)?$", r"\1")
    return pc.replace_substring_regex(whole, r"([+-]\d\d)(\d\d)$", r"\1:\2")


def try_cast(values: Datum, kind: pa.DataType) -> Datum:
    """Do the same, but give NULL for values that do not fit."""
    try:
        return cast(values, kind)
    except pa.ArrowInvalid:
        if isinstance(values, pa.Scalar):
            return pa.scalar(None, kind)
    return pa.array([_cast_or_none(value, kind) for value in values], kind)


def _cast_or_none(value: pa.Scalar, kind: pa.DataType) -> Datum | None:
    try:
        return cast(value, kind)  # Python has fewer dates than Arrow
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
    """Return whether a cast from one type to the other keeps the meaning of every literal.

    ``0.1`` is meant for a column of 32-bit floats as well, though it is another number there, and
    ``'2020-01-01'`` may be a date or the first moment of it.
    """
    both_float = t.is_floating(kind) and t.is_floating(other)
    is_time = t.is_string(kind) and t.is_temporal(other)
    is_nothing = t.is_null(kind) or (t.is_list(kind) and t.is_null(kind.value_type))
    return bool(both_float or is_time or is_nothing)
