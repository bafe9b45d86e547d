"""Expressions that may be NULL, and those that never are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pennon.expr.nullable import may_be_null
from pennon.expr.parse import parse_column

SCHEMA = pa.schema(
    [
        pa.field("i", pa.int32(), nullable=False),
        ("f", pa.float64()),
        pa.field("s", pa.struct([pa.field("x", pa.int8(), nullable=False), ("y", pa.int8())]),
                 nullable=False),
        ("t", pa.struct([pa.field("x", pa.int8(), nullable=False)])),
    ]
)  # fmt: skip
NEVER = [
    *("i", "i + 1", "cast(i as bigint)", "coalesce(f, i)", "i is null", "f is null", "not (i > 1)"),
    *("i in (1, 2)", "i between 1 and 2", "'x' like 'y'", "upper('x')", "concat('a', 'b')", "-i"),
    *("true", "round(i)", "length('abc')", "cast(i as string)", "s.x", "(f > 1) is true"),
]
PERHAPS = [
    *("f", "i * f", "abs(i)", "null", "i > 1 and f > 1", "nullif(i, 1)", "random()", "s.y", "t.x"),
    *("cast(null as int)", "nullif(1, 1)", "try_cast(i as tinyint)", "coalesce(f, null)"),
]


@pytest.mark.parametrize("text", NEVER)
def test_expressions_that_are_never_null(text: str) -> None:
    assert not may_be_null(parse_column(text, SCHEMA), SCHEMA)


@pytest.mark.parametrize("text", PERHAPS)
def test_expressions_that_may_be_null(text: str) -> None:
    assert may_be_null(parse_column(text, SCHEMA), SCHEMA)
