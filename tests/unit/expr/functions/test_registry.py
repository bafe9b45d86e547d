"""Properties of functions: constant or not, and NULL rules."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pennon.expr.evaluate import is_constant
from pennon.expr.functions.function import NullRule
from pennon.expr.functions.registry import FUNCTIONS, find_function
from pennon.expr.parse import parse_column

SCHEMA = pa.schema([("f", pa.float64()), ("t", pa.timestamp("us"))])


def test_functions_of_time_and_chance_are_not_constant() -> None:
    changing = {name for name, function in FUNCTIONS.items() if not function.is_constant}
    assert changing == {"random", "uuid", "now", "current_timestamp", "current_date", "today"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("f > 1 and abs(f) < 2", True), ("f > random()", False), ("abs(f + random()) > 1", False)],
)
def test_expression_is_constant_if_all_its_functions_are(text: str, *, expected: bool) -> None:
    assert is_constant(parse_column(text, SCHEMA)) is expected


def test_null_rules_of_functions() -> None:
    assert find_function("round").null_rule is NullRule.ANY
    assert find_function("nvl").null_rule is NullRule.ALL
    assert find_function("is_valid").null_rule is NullRule.NEVER
    assert find_function("abs").null_rule is NullRule.UNKNOWN
