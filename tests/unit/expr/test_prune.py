"""Conditions judged by bounds alone: never is a unit ruled out that holds a match."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pennon.expr.evaluate import evaluate
from pennon.expr.parse import parse_filter
from pennon.expr.prune import Bounds, Pruner, literals_beside

SCHEMA = pa.schema(
    {
        "i": pa.int32(),
        "f": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "t": pa.timestamp("us"),
        "d": pa.date32(),
        "u": pa.uint64(),
    }
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-3, 3),
    "f": st.sampled_from([-1.5, -0.0, 0.0, 2.0, math.inf, -math.inf, math.nan]),
    "s": st.sampled_from(["", "a", "ab", "b", "\u00e9", "\U0001f600"]),
    "b": st.booleans(),
    "t": st.sampled_from([datetime(2020, 1, day) for day in (1, 2, 3)]),
    "d": st.sampled_from([date(2020, 1, day) for day in (1, 2, 3)]),
    "u": st.integers(0, 4),
}
LITERALS = {
    "i": ["-2", "0", "1.5", "3", "NULL"],
    "f": ["0", "-1.5", "2", "cast('nan' as double)", "NULL"],
    "s": ["''", "'a'", "'b'", "'\u00e9'"],
    "b": ["true", "false"],
    "t": ["timestamp '2020-01-02 00:00:00'", "date '2020-01-03'"],
    "d": ["date '2020-01-02'", "'2020-01-01'"],
    "u": ["0", "2", "-1", "9"],
}


@st.composite
def atoms(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(LITERALS)))
    literal = st.sampled_from(LITERALS[name])
    shapes = [
        f"{name} {draw(st.sampled_from(['=', '!=', '<', '<=', '>', '>=']))} {draw(literal)}",
        f"{draw(literal)} {draw(st.sampled_from(['=', '<', '>=']))} {name}",
        f"{name} IN ({draw(literal)}, {draw(literal)})",
        f"{name} NOT IN ({draw(literal)})",
        f"{name} BETWEEN {draw(literal)} AND {draw(literal)}",
        f"{name} IS NULL",
        f"{name} IS NOT NULL",
        "b",
        "b IS TRUE",
        "b IS NOT TRUE",
        "i = u",
        "i < f",
        "s LIKE 'a%'",
        "i + 1 > 2",
        "NULL",
        "1 = 1",
    ]
    return draw(st.sampled_from(shapes))


CONDITIONS = st.recursive(
    atoms(),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        )
        | inner.map(lambda text: f"NOT ({text})")
        | inner.map(lambda text: f"({text}) IS NULL")
        | inner.map(lambda text: f"({text}) IS FALSE")
    ),
    max_leaves=5,
)


def _sort_key(value: Any) -> Any:
    return (math.isnan(value), value) if isinstance(value, float) else value


def bounds_of(values: list[Any], kind: pa.DataType, *, knows: int) -> Bounds:
    """Return true bounds, of which some are not known."""
    real = sorted((value for value in values if value is not None), key=_sort_key)
    return Bounds(
        pa.scalar(real[0], kind) if real and knows & 1 else None,
        pa.scalar(real[-1], kind) if real and knows & 2 else None,
        len(values) - len(real) if knows & 4 else None,
        len(values) if knows & 8 else None,
    )


@settings(max_examples=250, deadline=None)
@given(text=CONDITIONS, data=st.data())
def test_pruning_by_bounds_rules_out_no_match(text: str, data: st.DataObject) -> None:
    try:
        condition = parse_filter(text, SCHEMA)
    except ValueError:
        return
    rows = data.draw(st.integers(1, 4))
    columns = {
        name: data.draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        for name, values in VALUES.items()
    }
    unit: dict[tuple[str, ...], Bounds] = {
        (name,): bounds_of(
            columns[name], SCHEMA.field(name).type, knows=data.draw(st.integers(0, 15))
        )
        for name in data.draw(st.sets(st.sampled_from(sorted(VALUES))))
    }
    batch = pa.record_batch(columns, schema=SCHEMA)
    if evaluate(condition, batch).true_count:
        assert Pruner(condition).can_match(unit)


def known(low: Any, high: Any, nulls: int = 0, rows: int = 10) -> Bounds:
    kind = pa.int32()
    return Bounds(pa.scalar(low, kind), pa.scalar(high, kind), nulls, rows)


@pytest.mark.parametrize(
    ("text", "bounds", "found"),
    [
        ("i > 4", known(1, 4), False),
        ("i >= 4", known(1, 4), True),
        ("4 < i", known(1, 4), False),
        ("i = 5", known(1, 4), False),
        ("i != 3", known(3, 3), False),
        ("i != 3", known(3, 4), True),
        ("i IN (0, 5, 9)", known(1, 4), False),
        ("i IN (0, 3, 9)", known(1, 4), True),
        ("i NOT IN (3)", known(3, 3), False),
        ("i BETWEEN 5 AND 9", known(1, 4), False),
        ("i IS NULL", known(1, 4), False),
        ("i IS NULL", known(1, 4, nulls=1), True),
        ("i IS NOT NULL", Bounds(null_count=10, rows=10), False),
        ("i > 0 OR i <= 0", Bounds(null_count=10, rows=10), False),
        ("NOT (i > 0)", known(1, 4, nulls=3), False),
        ("(i > 0) IS NULL", known(1, 4), False),
        ("i > 9 OR s = 'x'", known(1, 4), True),
        ("i > 9 AND s = 'x'", known(1, 4), False),
        ("(i > 9) IS NOT TRUE AND i > 9", known(1, 4), False),
        ("false", known(1, 4), False),
        ("i > 4", Bounds(low=pa.scalar(1, pa.int32())), True),
    ],
)
def test_prune_by_bounds_decides_each_condition(text: str, bounds: Bounds, found: bool) -> None:
    assert Pruner(parse_filter(text, SCHEMA)).can_match({("i",): bounds}) is found


def test_literals_beside_a_column() -> None:
    condition = parse_filter("i > 4 AND (u IN (7, 8) OR NOT i = 2) AND i + 1 > 5", SCHEMA)
    assert sorted(literals_beside(condition, ("i",))) == [2, 4]
    assert sorted(literals_beside(condition, ("u",))) == [7, 8]
