"""Division of decimals: digits are cut as the reference cuts them.

Row ids are unsigned, and the reference takes them for decimals as soon as it divides them.  So the
rest of a division is worked out in machine words where these hold all values.
"""

from __future__ import annotations

from decimal import ROUND_DOWN, Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.byte_ranges import Int64Array
from pennon.expr.cast import Datum
from pennon.expr.rowwise import by_row

_EXACT = Context(prec=76)


def decimal_divide(left: Datum, right: Datum) -> Datum:
    """Divide decimals: four digits more than the left side has, the rest cut."""
    scale = min(left.type.scale + 4, 38)
    digits = left.type.precision - left.type.scale + right.type.scale + scale
    kind = pa.decimal128(min(max(digits, 1), 38), scale)
    unit = Decimal(1).scaleb(-scale)

    def divide(over: Decimal, under: Decimal) -> Decimal:
        if not under:
            message = "divide by zero"
            raise pa.ArrowInvalid(message)
        return _EXACT.divide(over, under).quantize(unit, ROUND_DOWN, _EXACT)

    return by_row(divide, kind)(left, right)


def decimal_remainder(left: Datum, right: Datum) -> Datum:
    """Return what a division of decimals leaves over, with the sign of the left side."""
    scale = max(left.type.scale, right.type.scale)
    whole = min(left.type.precision - left.type.scale, right.type.precision - right.type.scale)
    kind = pa.decimal128(min(max(whole + scale, 1), 38), scale)

    if isinstance(left, pa.Array) or isinstance(right, pa.Array):
        words = [_words(each, scale) for each in (left, right)]
        if words[0] is not None and words[1] is not None:
            return _remainder_of_words(words[0], words[1], left, right, kind)

    def remain(over: Decimal, under: Decimal) -> Decimal:
        if not under:
            message = "divide by zero"
            raise pa.ArrowInvalid(message)
        return _EXACT.remainder(over, under)

    return by_row(remain, kind)(left, right)


def _words(values: Datum, scale: int) -> Int64Array | None:
    """Return decimals as units of a scale, any number for NULL; None if 64 bits do not hold all."""
    if not isinstance(values, pa.Array):
        values = pa.repeat(values, 1)
    try:
        values = pc.cast(pc.fill_null(values, 0), pa.decimal128(38, scale))
    except pa.ArrowInvalid:
        return None
    pairs = np.frombuffer(values.buffers()[1] or b"", np.int64)[2 * values.offset :]
    low, high = pairs[: 2 * len(values)].reshape(-1, 2).T
    return low if (low >> 63 == high).all() else None


def _remainder_of_words(
    over: Int64Array, under: Int64Array, left: Datum, right: Datum, kind: pa.DataType
) -> pa.Array:
    is_valid = np.asarray(pc.and_(pc.is_valid(left), pc.is_valid(right)))
    if ((under == 0) & is_valid).any():
        message = "divide by zero"
        raise pa.ArrowInvalid(message)
    with np.errstate(divide="ignore"):  # rows that are NULL
        low = np.fmod(over, under)
    words = np.stack([low, low >> 63], axis=1)
    bits = pa.array(is_valid).buffers()[1]
    return pa.Array.from_buffers(kind, len(low), [bits, pa.py_buffer(words)])
