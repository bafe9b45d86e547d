"""Random programs of `LanceTable` over nested columns, against a model in plain Python.

Columns are structs, arrays and maps in one another, variants, decimals, fields that may not be NULL, names that differ by
case; rows are appended, merged with all clauses, updated (fields of structs, too) and deleted, columns come, grow, get
other names and go; with ``spark.sql.ansi.enabled`` and without.  ``PENNON_NESTED_PROGRAMS=300`` sets how many run,
``PENNON_PROGRAM_SEED=17`` runs one.  A failure prints the steps up to it.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.spark.programs.life import Life
from tests.spark.programs.shapes import (
    Field,
    fitted,
    map_of,
    respelled,
    scalar,
    spoiled,
    sql_of,
    struct,
    with_value,
)
from tests.spark.programs.table import DifferenceError

SHARDS = 12
FEW = 3
MANY = int(os.environ.get("PENNON_NESTED_PROGRAMS", "300"))
SEED = os.environ.get("PENNON_PROGRAM_SEED")


def test_random_nested_programs_equal_the_model(spark: SparkSession, tmp_path: Path) -> None:
    for seed in range(FEW) if SEED is None else [int(SEED)]:
        Life(spark, str(tmp_path / f"{seed}.lance"), seed).run()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_many_random_nested_programs_equal_the_model(
    spark: SparkSession, tmp_path: Path, shard: int
) -> None:
    """All of a shard's programs run, and each that failed is printed."""
    failures = []
    for seed in range(FEW + shard, MANY, SHARDS):
        try:
            Life(spark, str(tmp_path / f"{seed}.lance"), seed).run()
        except DifferenceError as failure:
            failures.append(f"{failure}")
    if failures:
        pytest.fail("\n\n".join(failures), pytrace=False)


def test_nested_program_detects_a_lost_append(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(spark, str(tmp_path / "t.lance"), 1)
    life.create()
    monkeypatch.setattr(Life, "attempt", lambda *_args, **_named: None)
    with pytest.raises(DifferenceError, match="seed 1"):
        life.append()


POINT = struct(Field("x", scalar("int")), Field("y", scalar("string")))


def test_nested_model_values_and_casts() -> None:
    """The values are fixed, so that a person can check the model."""
    column = Field("p", POINT)
    way = (column, POINT.fields[0])
    assert with_value(way, {"id": 1, "p": None}, 7) == {"id": 1, "p": {"x": 7, "y": None}}
    assert fitted(map_of(scalar("int"), POINT), [(1, {"x": 2})]) == [(1, {"x": 2, "y": None})]
    long = struct(Field("Y", scalar("string")), Field("X", scalar("long")))
    assert spoiled(POINT, long, {"x": 1, "y": "a"}) == ({"x": 1 << 40, "y": "a"}, True)
    assert spoiled(POINT, POINT, {"x": 1, "y": "a"}) == ({"x": 1, "y": "a"}, False)
    assert sql_of(Random(1), map_of(scalar("int"), scalar("string")), [(1, "it's")]) == (
        "map(1, 'it\\'s')"
    )
    assert respelled(Random(1), scalar("string"), case=True) == scalar("string")
