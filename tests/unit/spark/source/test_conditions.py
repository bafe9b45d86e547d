"""Conditions of Spark's users: which are answered without Spark, and which columns they name."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from pennon.scan.predicate import Predicate
from pennon.spark.source.conditions import (
    columns_named,
    literals_of,
    predicate_of,
    system_columns_named,
)
from pennon.spark.types import spark_schema

ROWS = pa.RecordBatch.from_pydict({
    "id": pa.array([1, 2, None, -4], pa.int64()),
    "small": pa.array([1, 2, 3, 4], pa.uint8()),
    "price": pa.array([0.5, 1.5, float("nan"), None], pa.float64()),
    "exact": pa.array([Decimal("1.10"), Decimal("2.20"), None, Decimal("4.40")], pa.decimal128(9, 2)),
    "ratio": pa.array([0.1, 0.2, 0.3, 0.4], pa.float32()),
    "name": pa.array(["a", "b'", None, ""], pa.string()),
    "day": pa.array([date(2026, 1, n) for n in (1, 2, 3, 4)], pa.date32()),
    "is_open": pa.array([True, False, None, True]),
    "at": pa.array([datetime(2026, 1, n, tzinfo=UTC) for n in (1, 2, 3)] + [None], pa.timestamp("us", "UTC")),
})  # fmt: skip


def translated(text: str, alias: str | None = None) -> Predicate | None:
    return predicate_of(text, spark_schema(ROWS.schema), ROWS.schema, alias)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("id = 1", [0]),
        ("id <> 1", [1, 3]),
        ("id >= -4 AND id < 2", [0, 3]),
        ("id IN (2, -4) OR id IS NULL", [1, 2, 3]),
        ("NOT (id IS NULL)", [0, 1, 3]),
        ("id <=> 1", [0]),
        ("small > 2", [2, 3]),
        ("price > 1.0", [1, 2]),
        ("exact = 2.2", [1]),
        ("name = 'a' or name = ''", [0, 3]),
        ("day > '2026-01-02'", [2, 3]),
        ("is_open = true", [0, 3]),
        ("name LIKE 'b%'", [1]),
        ("name LIKE '%a%'", [0]),
        ("NOT (name LIKE '%a')", [1, 3]),
        ("at >= CAST('2026-01-02T00:00:00+00:00' AS TIMESTAMP)", [1, 2]),
        ("t.id = 1", [0]),
        ("name LIKE 'a%'", [0]),
        ("name NOT LIKE 'a%'", [1, 3]),
        ("NOT name LIKE '%b%'", [0, 3]),
    ],
)
def test_condition_with_literals_is_parsed_without_spark(text: str, rows: list[int]) -> None:
    found = translated(text, alias="t")
    assert found is not None
    answers = found.test(ROWS).to_pylist()
    assert [number for number, answer in enumerate(answers) if answer] == rows


@pytest.mark.parametrize(
    "text",
    [
        "ratio > 0.1",  # Spark compares as doubles, and 0.1f is more than 0.1
        "id = '1'",
        "id = 1.0",
        "ID = 1",
        "s.id = 1",
        "id = small",
        "id + 1 = 2",
        "upper(name) = 'A'",
        "name LIKE 'a_'",
        "name NOT LIKE 'a%b'",
        "name NOT LIKE 'a%' ESCAPE '/'",
        "name LIKE 'a%b'",
        "name LIKE '%'",
        "name LIKE 'a' ESCAPE '/'",
        "name = 'a\\'b'",
        "name = 'b'''",  # two literals side by side: b
        "id = 1 -- comment",
        "day > '2026-1-2'",
        "price > 1e3",
        "id IN (SELECT 1)",
        "nope = 1",
        "id =",
        "id = 1 OR rand() > 0.5",
    ],
)
def test_condition_with_spark_only_meaning_is_untranslated(text: str) -> None:
    assert translated(text, alias="t") is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("id = 1", ["id"]),
        ("ID = 1 AND `name` = 'x'", ["id", "name"]),
        ("t.id = s.name", ["id"]),
        ("t.`id` = s.`name`", ["id"]),
        ("hid = 1 or identity = 2", []),
        ("id * price > 1", ["id", "price"]),
        ("+(*(id, price), 1)", ["id", "price"]),
        ("count(*) > 1", ROWS.schema.names),
        ("true", []),
    ],
)
def test_columns_named_by_a_condition(text: str, names: list[str]) -> None:
    assert columns_named([text], ROWS.schema.names, "t") == names


def literal(name: str, text: str) -> object:
    found = literals_of({name: text}, spark_schema(ROWS.schema), ROWS.schema)
    return found if found is None else found[name].as_py()


def test_literals_of_the_column_type_are_parsed() -> None:
    assert literal("id", "-7") == -7
    assert literal("small", "255") == 255
    assert literal("price", "1.5") == 1.5
    assert literal("exact", "1.5") == Decimal("1.50")
    assert literal("name", "'x'") == "x"
    assert literal("is_open", "false") is False
    found = literals_of({"id": "NULL"}, spark_schema(ROWS.schema), ROWS.schema)
    assert found is not None
    assert found["id"] == pa.scalar(None, pa.int64())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("small", "256"),
        ("id", "1.5"),
        ("id", "'1'"),
        ("exact", "1.555"),
        ("day", "'2026-01-01'"),
        ("ratio", "0.1"),
        ("id", "id + 1"),
        ("name", "id"),
        ("nope", "1"),
        ("name", "'a"),
    ],
)
def test_literals_of_other_types_are_untranslated(name: str, text: str) -> None:
    assert literal(name, text) is None


@pytest.mark.parametrize(
    ("text", "alias", "given", "named"),
    [
        ("_rowaddr = 1", None, [], ["_rowaddr"]),
        ("t._ROWID = s._rowid", "t", [], ["_rowid"]),
        ("t._rowid = s._rowid", "t", ["_rowid"], ["_rowid"]),
        ("t.id = s._rowid", "t", ["_rowid"], []),
        ("_rowid + `_rowaddr`", "t", ["_rowid"], ["_rowaddr"]),
        ("struct(*)", "t", [], []),
        ("my_rowid = x_rowaddr", None, [], []),
    ],
)
def test_row_ids_and_addresses_in_conditions_refer_to_the_table(
    text: str, alias: str | None, given: list[str], named: list[str]
) -> None:
    assert system_columns_named([text], ["id"], alias, given) == named
    assert system_columns_named([text], ["id", "_rowid", "_rowaddr"], alias, given) == []
