"""pyarrow's expressions in our own form give the same answers, or are left to pyarrow."""

from __future__ import annotations

import datetime as dt
import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import acero

from pennon.expr.evaluate import evaluate
from pennon.expr.from_arrow import from_arrow
from pennon.expr.parse import parse_filter
from tests.interop.filter_corpus import filter_table

TABLE = filter_table().combine_chunks()
BATCH = TABLE.to_batches()[0]
F = pc.field
DAY = dt.datetime(2020, 1, 1)
AS_IN_PYARROW = [
    F("i32") > 5,
    pc.scalar(5) < F("i32"),
    F("i8") > 200,
    F("u8") <= F("i8"),
    F("s") == "Bob",
    F("ls") == "a",
    F("dic") == "Bob",
    F("bin") == b"a",
    F("s").isin(["a", None]),
    ~F("s").isin(["a", None]),
    F("i32").isin([None]),
    F("s").is_null() | F("b").is_valid(),
    F("f64").is_null(nan_is_null=True),
    pc.is_nan(F("f64")),
    F("f64") < 1.5,
    F("f64") <= 1.5,
    F("f64") != 1.5,
    F("f64") * 2 < 3,
    F("ts") < pa.scalar(DAY, pa.timestamp("us")),
    F("tsn") >= pa.scalar(DAY, pa.timestamp("s")),
    F("d") > DAY.date(),
    F("st", "x") > 1,
    ~F("b") & (F("i32") > 1),
    F("odd name") > 3,
    F("i32") > pa.scalar(None, pa.int32()),
    pc.starts_with(F("s"), "B"),
    pc.ends_with(F("s"), "b"),
    pc.match_substring(F("s"), "o"),
    pc.match_like(F("s"), "%b%"),
    pc.if_else(F("s").is_valid(), F("s").isin(["a", "b"]), pa.scalar(None, pa.bool_())),
    F("f64") < 3,
    pc.scalar(True),  # noqa: FBT003 - the condition
]
AS_IN_SQL = [
    (F("f64") > 1.5, "f64 > 1.5"),
    (F("f64") >= 1.5, "f64 >= 1.5"),
    (F("f64") * 2 > 3, "f64 * 2.0 > 3.0"),
    (F("f64") > 3, "f64 > 3"),
    (
        pc.if_else(F("f64").is_valid(), F("f64").isin([1.5, 0]), pa.scalar(None, pa.bool_())),
        "f64 in (1.5, 0.0)",
    ),
    (F("f64") == pa.scalar(float("nan")), "f64 = cast('nan' as double)"),
    (F("s").isin(["a", "zz"]), "s in ('a', 'zz')"),
    (~F("s").isin(["a", "zz"]), "s not in ('a', 'zz')"),
    (~F("f64").isin([1.5, 0]), "f64 not in (1.5, 0.0)"),
]
"""NaN is above all numbers, and NULL is not known to be none of others; -0.0 is 0.0."""
LEFT_TO_PYARROW = [
    F("i32").cast("int64") > 1,
    F("i64") + 1 > 3,
    pc.match_substring(F("s"), "B", ignore_case=True),
    pc.if_else(F("b"), F("s").isin(["a"]), pa.scalar(None, pa.bool_())),
    F("tz") < pa.scalar(DAY, pa.timestamp("us")),
    F("i32") == "x",
    F("nosuch") > 1,
    F("i32"),
]


def answers(expression: pc.Expression) -> pa.Array:
    source = acero.TableSourceNodeOptions(TABLE)
    project = acero.ProjectNodeOptions([expression], ["x"])
    plan = [acero.Declaration("table_source", source), acero.Declaration("project", project)]
    return acero.Declaration.from_sequence(plan).to_table().column(0).combine_chunks()


@pytest.mark.parametrize("expression", AS_IN_PYARROW, ids=str)
def test_arrow_expressions_equal_pyarrow(expression: Any) -> None:
    condition = from_arrow(expression, TABLE.schema)
    assert condition is not None
    assert evaluate(pickle.loads(pickle.dumps(condition)), BATCH).equals(answers(expression))


@pytest.mark.parametrize(("expression", "text"), AS_IN_SQL, ids=str)
def test_arrow_expressions_with_sql_semantics(expression: Any, text: str) -> None:
    condition = from_arrow(expression, TABLE.schema)
    assert condition is not None
    found = evaluate(condition, BATCH)
    assert found.equals(evaluate(parse_filter(text, TABLE.schema), BATCH))
    assert not found.equals(answers(expression))


@pytest.mark.parametrize("expression", LEFT_TO_PYARROW, ids=str)
def test_unsupported_arrow_expressions_are_untranslated(expression: Any) -> None:
    assert from_arrow(expression, TABLE.schema) is None


def test_long_and_deep_expressions() -> None:
    chain, deep = F("i32") == 0, F("b")
    for number in range(1, 2_000):
        chain = chain | (F("i32") == number)
        deep = ~deep
    for expression in (chain, deep):
        condition = from_arrow(expression, TABLE.schema)
        assert condition is None or evaluate(condition, BATCH).equals(answers(expression))
