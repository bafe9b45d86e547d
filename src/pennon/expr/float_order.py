"""The rule for -0.0 and NaN: -0.0 equals 0.0, NaN equals NaN with any bits, and is above all numbers.

Arrow compares floats in some functions by their bits.  Values in the form that `one_form` gives have the
same bits where they are equal.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.expr.cast import Datum


def one_form(values: Datum) -> Datum:
    """Return floats with 0.0 for -0.0, and one NaN for all; half floats as float32; others as they are."""
    if not t.is_floating(values.type):
        return values
    wide = pc.cast(values, pa.float32()) if t.is_float16(values.type) else values
    plain = pc.add(wide, pa.scalar(0.0, wide.type))  # -0.0 + 0.0 is 0.0
    return pc.if_else(pc.is_nan(wide), pa.scalar(math.nan, wide.type), plain)


def has_floats(kind: pa.DataType) -> bool:
    """Return whether there are floats in values of a type."""
    children = [kind.field(number).type for number in range(kind.num_fields)]
    return t.is_floating(kind) or any(map(has_floats, children))


def one_key(value: Any) -> Any:
    """Return what a Python value is compared by: equal values of lists and structs have equal texts."""
    if isinstance(value, float):
        return 0.0 if value == 0 else value
    if isinstance(value, list | tuple):
        return [one_key(each) for each in value]
    if isinstance(value, dict):
        return {name: one_key(each) for name, each in value.items()}
    return value
