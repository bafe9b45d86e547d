"""Statements are cut into words as Spark cuts them, and put together again around replaced ones."""

from __future__ import annotations

import pytest

from pennon.errors import ArgumentError
from pennon.spark.statements.words import (
    Cursor,
    Splice,
    Statement,
    chains,
    cut_words,
    spliced,
    split_statements,
)


def test_words_of_a_statement_without_comments_and_hints_as_one_word() -> None:
    words = cut_words(
        "SELECT /*+ BROADCAST(a) */ `odd ``name`, 1.5BD, 'it''s' -- WHERE\n FROM a.b /* c */"
    )
    assert [word.text for word in words] == [
        "SELECT", "/*+ BROADCAST(a) */", "odd `name", ",", "1.5", ",", "it's", "FROM", "a", ".", "b",
    ]  # fmt: skip
    assert [word.upper for word in words[2:7]] == ["", ",", "1.5", ",", ""]


def test_words_of_statements_that_sqlglot_takes_for_commands() -> None:
    words = cut_words("SHOW TABLES IN lake PRIMARY KEY ORDER BY x")
    assert [word.text for word in words] == [
        "SHOW",
        "TABLES",
        "IN",
        "lake",
        "PRIMARY",
        "KEY",
        "ORDER",
        "BY",
        "x",
    ]


@pytest.mark.parametrize(
    "text", ["SELECT 'a", "SELECT `a", "SELECT 1 /* a", "a -- b \\\n; DROP TABLE t"]
)
def test_words_of_an_open_string_name_or_comment_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError):
        cut_words(text)


def test_semicolons_in_strings_names_and_comments() -> None:
    text = " SELECT ';', `;` -- ;\n FROM a; /* ; */ ; DELETE FROM b ;"
    found = [each.text for each in split_statements(text)]
    assert found == ["SELECT ';', `;` -- ;\n FROM a", "DELETE FROM b"]


def test_names_with_dots_quotes_and_keywords() -> None:
    found = [str(each) for each in chains(Statement.of("lake.`a b`.t, x.1a, f(y.*)"))]
    assert found == ["lake.`a b`.t", "x.1a", "f", "y"]


def test_keywords_in_case_and_parentheses_do_not_end_a_condition() -> None:
    cursor = Cursor(Statement.of("a = CASE WHEN b THEN 1 END AND f(x, WHEN) WHEN MATCHED"))
    assert cursor.until("WHEN") == "a = CASE WHEN b THEN 1 END AND f(x, WHEN)"
    assert cursor.takes("WHEN", "MATCHED")
    assert cursor.is_done


def test_keywords_in_quoted_names_and_texts() -> None:
    cursor = Cursor(Statement.of("`FROM` 'FROM' FROM"))
    assert not cursor.takes("FROM")
    assert cursor.identifier() == "FROM"
    assert cursor.text_literal() == "FROM"
    assert cursor.takes("FROM")


def test_properties_with_texts_numbers_words_and_dots() -> None:
    cursor = Cursor(Statement.of("('a.b' = 'c', d.e = -3, f = true, g 'h')"))
    assert cursor.properties() == {"a.b": "c", "d.e": "-3", "f": "true", "g": "h"}


def test_a_wrong_word_is_named_beside_the_one_wanted() -> None:
    cursor = Cursor(Statement.of("DELETE users"))
    cursor.needs("DELETE")
    with pytest.raises(ArgumentError, match=r"'DELETE users': FROM is expected, not 'users'"):
        cursor.needs("FROM")


def test_parts_of_a_text_are_replaced_by_their_places() -> None:
    assert spliced("abcdef", [Splice(4, 5, "X"), Splice(0, 2, ""), Splice(6, 6, "!")]) == "cdXf!"
