"""Statements find the functions that read them; texts that are none give typed errors, whatever is in them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from pennon.errors import LanceError
from pennon.spark.statements import inserts, row_statements, table_statements
from pennon.spark.statements.references import parse_query
from pennon.spark.statements.run import STATEMENTS, parser_of
from pennon.spark.statements.session import attach
from pennon.spark.statements.words import Statement


class Settings:
    """The settings of a session that has none."""

    def get(self, name: str, default: str | None = None) -> str | None:
        return default


class Session:
    """A session that runs nothing."""

    conf = Settings()

    def sql(self, text: str) -> Any:
        raise LanceError(text)


SESSION: Any = Session()
LAKE = attach(SESSION, {"t": "/nowhere/t.lance", "n.u": "/nowhere/u.lance"})
WORDS = [
    *sorted({word for words in STATEMENTS for word in words}),
    "lake.t", "t", "lake.n.u", "lake", "lance.`/x/y.lance`", "`a``b`", "(", ")", ",", ";", ".", "*", "=", "@", ":p", "?",
    "1", "1.5D", "'text'", "SELECT", "FROM", "WHERE", "JOIN", "ON", "USING", "AS", "WITH", "VALUES", "SET", "INTO",
    "OVERWRITE", "BY", "NAME", "VERSION", "TIMESTAMP", "OF", "WHEN", "MATCHED", "NOT", "THEN", "TAG", "BRANCH", "COLUMN",
    "COLUMNS", "RENAME", "TO", "TBLPROPERTIES", "IF", "EXISTS", "ZORDER", "RETAIN", "HOURS", "CASE", "END", "{", "}",
    "STRUCT<", ">>", "lance_match", "lance_changes", "FILEFORMAT", "PRIMARY", "KEY", "DETAIL", "HISTORY", "INDEX",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("insert into t select 1", inserts.insert),
        ("REPLACE t WHERE a AS SELECT 1", inserts.replace_where),
        ("REPLACE TABLE t (a INT)", table_statements.create_table),
        ("WITH c AS (SELECT 1) MERGE INTO t", row_statements.merge),
        ("FROM a INSERT INTO t SELECT 1", inserts.multi_insert),
        ("SELECT 1", None),
        ("WITH c AS (DELETE) SELECT 1", None),
        ("SET a = b", None),
    ],
)
def test_function_that_reads_a_statement(text: str, read: Any) -> None:
    assert parser_of(Statement.of(text)) is read


@given(some.lists(some.sampled_from(WORDS), min_size=1, max_size=25))
@settings(max_examples=600)
def test_random_words_are_read_or_refused_with_typed_errors(words: list[str]) -> None:
    try:
        statement = Statement.of(" ".join(words))
        read = parser_of(statement)
        if read is not None:
            read(SESSION, statement)
        parse_query(SESSION, statement)
    except LanceError:
        pass


@given(some.sampled_from(sorted(STATEMENTS)), some.lists(some.sampled_from(WORDS), max_size=15))
@settings(max_examples=600)
def test_random_words_behind_a_statement_are_read_or_refused(
    begin: tuple[str, ...], words: list[str]
) -> None:
    try:
        statement = Statement.of(" ".join([*begin, "lake.t", *words]))
        read = parser_of(statement)
        assert read is not None
        read(SESSION, statement)
    except LanceError:
        pass


@given(some.text(max_size=40))
@settings(max_examples=300)
def test_random_text_is_cut_or_refused(text: str) -> None:
    with suppress(LanceError):
        Statement.of(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 3000 + "1" + ")" * 3000 + " FROM t",
        "SELECT * FROM t WHERE " + " AND ".join(["a = 1"] * 3000),
        "SELECT * FROM t WHERE " + "NOT " * 3000 + "a",
        "SELECT * FROM " + ", ".join(["t"] * 300),
    ],
    ids=["nested", "long", "negated", "wide"],
)
def test_deep_and_long_queries_find_their_tables(text: str) -> None:
    found = parse_query(SESSION, Statement.of(text)).references
    assert len(found) == text.count("t,") + 1
