"""What queries compute of constants: dates moved by intervals, sums of numbers."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from pennon.spark.statements.constants import folded


def fold(text: str) -> str | None:
    """Return what a constant becomes, as SQL."""
    found = folded(sqlglot.parse_one(text, dialect="spark"))
    return None if found is None else found.sql(dialect="spark")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DATE '1993-07-01' + INTERVAL '3' MONTH", "1993-10-01"),
        ("DATE '1998-12-01' - INTERVAL '90' DAY", "1998-09-02"),
        ("DATE '2024-02-29' + INTERVAL '1' YEAR", "2025-02-28"),
        ("DATE '2024-03-31' - INTERVAL 1 MONTH", "2024-02-29"),
        ("(DATE '2024-01-01' + INTERVAL 2 WEEKS)", "2024-01-15"),
        ("DATE '2024-01-31' + INTERVAL '-2' MONTHS", "2023-11-30"),
    ],
)
def test_dates_moved_by_intervals_are_those_of_spark(text: str, expected: str) -> None:
    assert fold(text) == f"CAST('{expected}' AS DATE)"


def test_sums_of_numbers_are_exact() -> None:
    assert fold("0.06 - 0.01") == "0.05"
    assert fold("1 + 10") == "11"
    assert fold("0.1 - 0.25") == "-0.15"


@pytest.mark.parametrize(
    "text",
    [
        "'1993-07-01' + INTERVAL '3' MONTH",
        "DATE '1993-07-01' + INTERVAL '3' HOUR",
        "DATE '1993-02-30' + INTERVAL '3' DAY",
        "DATE '9999-12-31' + INTERVAL '1' DAY",
        "DATE '2000-01-01' + INTERVAL '1-2' YEAR TO MONTH",
        "1e3 + 1",
        "a + 1",
        "2 * 3",
    ],
)
def test_other_constants_are_left_to_spark(text: str) -> None:
    assert isinstance(sqlglot.parse_one(text, dialect="spark"), exp.Expr)
    assert fold(text) is None
