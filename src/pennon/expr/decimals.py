"""Division of decimals: digits are cut as the reference cuts them."""

from __future__ import annotations

from decimal import ROUND_DOWN, Context, Decimal

import pyarrow as pa

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

    def remain(over: Decimal, under: Decimal) -> Decimal:
        if not under:
            message = "divide by zero"
            raise pa.ArrowInvalid(message)
        return _EXACT.remainder(over, under)

    return by_row(remain, kind)(left, right)
