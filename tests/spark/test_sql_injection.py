"""Values, identifiers and comments of SQL are never more than that."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pennon.errors import (
    ArgumentError,
    NotFoundError,
    UnsupportedError,
)
from pennon.spark import AttachedCatalog

# --- injection ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "x' OR '1' = '1",
        "x\\' OR 1 = 1 --",
        "'; DELETE FROM items; --",
        "x' UNION SELECT name FROM items /*",
        "*/ OR TRUE --",
        "`) OR TRUE",
        "{v0}",
        ":other",
        "\x00' OR TRUE",
        "x\n-- \\\n OR TRUE",
        'x" OR TRUE OR "',
    ],
)
@pytest.mark.parametrize("escaped", ["true", "false"])
def test_values_of_parameters_are_never_more_than_values(
    spark: SparkSession, ask: Any, value: str, escaped: str
) -> None:
    spark.conf.set("spark.sql.parser.escapedStringLiterals", escaped)
    try:
        assert ask("SELECT id FROM items WHERE name = :v", v=value) == []
        assert ask(
            "SELECT ? AS v, count(*) AS n FROM items i JOIN items j ON i.id = j.id AND i.id = 1",
            [value],
        ) == [(value, 1)]
        assert ask("DELETE FROM items WHERE name = ?", [value]) == [(0,)]
        assert ask("UPDATE items SET name = :v WHERE id = 1", v=value) == [(1,)]
        assert ask("INSERT INTO items (id, name) VALUES (500, :v)", v=value) == [(1, 1)]
        assert ask("SELECT id FROM items WHERE name = :v ORDER BY id", v=value) == [(1,), (500,)]
        assert ask("SELECT count(*) FROM items") == [(11,)]
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")


def test_parameters_stand_for_no_names_and_no_clauses(ask: Any) -> None:
    for text in (
        "SELECT * FROM :t",
        "DELETE FROM :t",
        "SELECT id FROM items ORDER BY id :t",
        "DROP TABLE :t",
    ):
        with pytest.raises((ArgumentError, PySparkException)):
            ask(text, t="items")
    assert ask("SELECT count(*) FROM items") == [(10,)]


def test_identifiers_with_signs_are_only_names(
    spark: SparkSession, ask: Any, lake: AttachedCatalog
) -> None:
    odd = "a`; DROP TABLE items; --{x}"
    ask(f"CREATE TABLE lake.odd (`{odd.replace('`', '``')}` INT, `b c` STRING)")
    ask("INSERT INTO lake.odd VALUES (1, 'x')")
    quoted = f"`{odd.replace('`', '``')}`"
    assert ask(f"SELECT {quoted}, `b c` FROM lake.odd WHERE {quoted} = 1") == [(1, "x")]
    assert ask(f"UPDATE lake.odd SET {quoted} = 2 WHERE `b c` = 'x'") == [(1,)]
    assert ask(f"SELECT max({quoted}) FROM lake.odd") == [(2,)]
    for name in ("`../outside`", "`a/../../b`", "`/etc/passwd`"):
        with pytest.raises((ArgumentError, NotFoundError, PySparkException)):
            ask(f"SELECT * FROM lake.{name}")
        with pytest.raises((ArgumentError, NotFoundError, UnsupportedError)):
            ask(f"CREATE TABLE lake.{name} (a INT)")
    assert ask("SELECT count(*) FROM items") == [(10,)]


def test_comments_in_statements_change_no_rows(ask: Any) -> None:
    assert ask("SELECT count(*) /* FROM nothing */ FROM items -- WHERE id = 1") == [(10,)]
    assert ask("DELETE FROM items /* all? */ WHERE id = 1 -- OR TRUE") == [(1,)]
    with pytest.raises(ArgumentError, match="backslash"):
        ask("SELECT count(*) FROM items -- a \\\n; DELETE FROM items", many=True)
    with pytest.raises(ArgumentError, match="cannot be cut into words"):
        ask("SELECT count(*) FROM items /* open")
    assert ask("SELECT count(*) FROM items") == [(9,)]
