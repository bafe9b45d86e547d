"""Comparisons of floating-point numbers: in total order, whichever side is one value for all rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import pyarrow as pa
import pytest

from pennon.expr.operators import OPERATORS

VALUES = [None, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan]


def _key(value: float) -> tuple[bool, float]:
    return math.isnan(value), 0.0 if math.isnan(value) else value


EXPECTED: dict[str, Callable[[float, float], bool]] = {
    "<": lambda x, y: _key(x) < _key(y),
    "<=": lambda x, y: _key(x) <= _key(y),
    ">": lambda x, y: _key(x) > _key(y),
    ">=": lambda x, y: _key(x) >= _key(y),
    "=": lambda x, y: _key(x) == _key(y),
    "!=": lambda x, y: _key(x) != _key(y),
}


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("name", EXPECTED)
def test_floats(name: str, kind: pa.DataType) -> None:
    for x, y in product(VALUES, VALUES):
        expected = None if x is None or y is None else EXPECTED[name](x, y)
        left, right = pa.array([x], kind), pa.array([y], kind)
        for sides in ((left, right), (left[0], right), (left, right[0])):
            assert OPERATORS[name](*sides)[0].as_py() is expected, (x, y, sides)
