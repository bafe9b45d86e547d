"""The text of names of tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.catalog import join_name, split_name
from pennon.catalog.table_names import LONGEST_NAME, check_parts
from pennon.errors import ArgumentError

PART = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a", ("a",)),
        ("a.b.c", ("a", "b", "c")),
        ("a.`b.c`", ("a", "b.c")),
        ("`a`", ("a",)),
        ("`a``b`.c", ("a`b", "c")),
        ("````", ("`",)),
        ("two words.ü", ("two words", "ü")),
        ("`..`./etc", ("..", "/etc")),
    ],
)
def test_split_name_with_dots_backticks_and_unicode(text: str, name: tuple[str, ...]) -> None:
    assert split_name(text) == name


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a..b", "`", "``", "`a", "a`", "`a`b", "a.`b"]
)
def test_split_name_of_text_without_a_part_raises(text: str) -> None:
    with pytest.raises(ArgumentError, match="no name of a table"):
        split_name(text)


def test_split_name_of_a_very_long_text_raises_at_once() -> None:
    with pytest.raises(ArgumentError, match="characters"):
        split_name("a." * LONGEST_NAME)
    with pytest.raises(ArgumentError):
        split_name("`" * (LONGEST_NAME - 1))
    assert len(split_name("a." * 30_000 + "b")) == 30_001


def test_join_name_quotes_parts_with_other_characters() -> None:
    assert join_name(("a", "b_1", "ü")) == "a.b_1.ü"
    assert join_name(("a.b", "1st", "x`y", "two words")) == "`a.b`.`1st`.`x``y`.`two words`"


@given(st.lists(PART, min_size=1, max_size=4).map(tuple))
def test_joined_names_split_into_the_same_parts(name: tuple[str, ...]) -> None:
    assert split_name(join_name(name)) == name


@pytest.mark.parametrize(
    "name", ["text", ("a", ""), ("a\0",), ("a\nb",), ("\ud800",), (1,), (None,)]
)
def test_check_parts_of_a_name_without_clean_text_raises(name: object) -> None:
    with pytest.raises(ArgumentError):
        check_parts(name, is_table=True)  # type: ignore[arg-type]


def test_check_parts_of_an_empty_name_is_the_root_namespace() -> None:
    assert check_parts((), is_table=False) == ()
    with pytest.raises(ArgumentError, match="root namespace"):
        check_parts((), is_table=True)
