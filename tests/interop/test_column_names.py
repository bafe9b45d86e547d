"""Names of columns in SQL: words of other statements, odd characters, case."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon

WORDS = """
    alter analyze begin call comment commit create cross date day delete desc describe drop end
    execute explain fetch filter first for format from grant group having index inner insert
    into join key lateral level limit merge offset on order outer over partition pivot position
    primary qualify range returning rollback row rows select set show start table tablesample text
    time timestamp to type union update use user using value values where window with year
"""
ODD = ["userId", "user-id", "order:id", "sp ace", "ünï", "1st", 'a"q', "a'q"]


def _tables(names: list[str]) -> list[Any]:
    data = pa.table({name: [at, at + 1] for at, name in enumerate(names)})
    return [
        module.write_dataset(data, "memory://names", mode="overwrite") for module in (lance, pennon)
    ]


def test_sql_keywords_are_column_names() -> None:
    words = WORDS.split()
    theirs, ours = _tables(words)
    for at, word in enumerate(words):
        for text in (f"{word} = {at}", f"{at} < {word} AND {word} IS NOT NULL"):
            assert ours.to_table(filter=text) == theirs.to_table(filter=text), text
    computed = {f"_{word}": f"{word} + 1" for word in words}
    assert ours.to_table(columns=computed) == theirs.to_table(columns=computed)


@pytest.mark.parametrize("name", ODD)
def test_column_names_with_odd_characters_in_back_ticks(name: str) -> None:
    for table in _tables(ODD):
        assert table.to_table(filter=f"`{name}` = {ODD.index(name)}", columns=[name]).num_rows == 1
        assert table.take([1], columns=[name]).column_names == [name]
        (row,) = table.to_table(columns=ODD, filter=f"`{name}` > {ODD.index(name)}").to_pylist()
        assert row == {each: at + 1 for at, each in enumerate(ODD)}
