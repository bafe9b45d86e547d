"""The column or struct field that a name in an assignment means."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as st

from pennon.errors import ArgumentError
from pennon.spark.changes.assignments import TableNames, assigned_values

INNER = st.StructType([st.StructField("x y", st.LongType()), st.StructField("Z", st.LongType())])
COLUMNS = st.StructType(
    [
        st.StructField("id", st.LongType()),
        st.StructField("st", INNER),
        st.StructField("t", st.StructType([st.StructField("id", st.LongType())])),
        st.StructField("a.b", st.LongType()),
        st.StructField("tick`s", st.LongType()),
    ]
)


def names(alias: str | None = None, *, case_sensitive: bool = False) -> TableNames:
    return TableNames(COLUMNS, COLUMNS, alias, case_sensitive)


@pytest.mark.parametrize(
    ("said", "alias", "path"),
    [
        ("ID", None, ("id",)),
        ("st.z", None, ("st", "Z")),
        ("st.`x y`", None, ("st", "x y")),
        ("`st`.`x y`", None, ("st", "x y")),
        ("a.b", None, ("a.b",)),
        ("`a.b`", None, ("a.b",)),
        ("tick`s", None, ("tick`s",)),
        ("`tick``s`", None, ("tick`s",)),
        ("t.id", None, ("t", "id")),
        ("t.id", "t", ("id",)),
        ("T.st.Z", "t", ("st", "Z")),
        ("`t`.`id`", "t", ("id",)),
        ("`my table`.st.Z", "my table", ("st", "Z")),
        ("st.Z", "st", ("st", "Z")),
    ],
)
def test_a_name_means_a_column_or_a_field(
    said: str, alias: str | None, path: tuple[str, ...]
) -> None:
    assert names(alias).path(said) == path


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("nope", "no column 'nope'; it has id, st"),
        ("other.id", "no column 'other.id'"),
        ("st.nope", "column 'st' has no field 'nope' .*; it has x y, Z"),
        ("id.x", "'id.x' is no field of a struct: 'id' is bigint"),
        ("`id", "no column '`id'"),
    ],
)
def test_assignment_to_unknown_column_or_field_is_refused(said: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        names().path(said)


def test_assignment_names_with_case_sensitive_session() -> None:
    assert names(case_sensitive=True).path("st.Z") == ("st", "Z")
    for said in ("ID", "st.z"):
        with pytest.raises(ArgumentError, match="has no"):
            names(case_sensitive=True).path(said)


def test_values_of_fields_stand_below_their_column() -> None:
    given: dict[str, Any] = {"st.Z": "1", "id": "2", "ST.`x y`": "3"}
    assert assigned_values(given, names()) == {"st": {"Z": "1", "x y": "3"}, "id": "2"}


@pytest.mark.parametrize(
    "given",
    [{"id": "1", "ID": "2"}, {"st": "1", "st.Z": "2"}, {"st.Z": "1", "st": "2"}, {"st.Z": "1", "st.z": "2"}],
)  # fmt: skip
def test_two_values_for_one_column_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="gets two values"):
        assigned_values(given, names())
