"""Automatic statistics: updates by writes and compactions, and aggregates that use them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
from pennon.errors import ArgumentError, ColumnTypeError
from pennon.scan.read.execute import Scan, read_batches

DAY = dt.date(2026, 1, 1)
EXACT = ("n", "d", "b")


def rows(start: int, count: int = 40) -> pa.Table:
    """Return rows with every fifth value NULL, and a NaN."""
    numbers = [None if n % 5 == 0 else n for n in range(start, start + count)]
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "d": pa.array([n and DAY + dt.timedelta(n) for n in numbers], pa.date32()),
            "b": pa.array([n and n % 3 == 0 for n in numbers], pa.bool_()),
            "f": pa.array([math.nan if n == 7 else n for n in numbers], pa.float64()),
            "s": pa.array([n and f"{n:03}" for n in numbers]),
            "l": pa.array([[n] for n in numbers]),
        }
    )


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Return a list that grows by the column and the number of rows of each read of an aggregate."""
    found: list[tuple[str, int]] = []
    real = read_batches

    def spy(scan: Scan, *given: Any, **named: Any) -> Iterator[pa.RecordBatch]:
        found.extend([(scan.projection.read.fields[0].name, scan.rows)] if scan.rows else [])
        return real(scan, *given, **named)

    monkeypatch.setattr("pennon.scan.run.aggregates.read_batches", spy)
    return found


def check(dataset: pennon.LanceDataset, columns: Iterable[str] = ("n", "d", "b", "f", "s")) -> None:
    """Raise AssertionError unless aggregates say what the rows do."""
    table = dataset.to_table()
    for name in columns:
        values = table[name].drop_null().to_pylist()
        rest = [each for each in values if not (isinstance(each, float) and math.isnan(each))]
        expected = {
            f"count({name})": len(values),
            f"null_count({name})": table[name].null_count,
            f"min({name})": min(rest),
            f"max({name})": max(rest),
        }
        found = dataset.aggregate({name: ["count", "null_count", "min", "max"]})
        if len(rest) < len(values):
            assert math.isnan(found.pop(f"max({name})"))
            del expected[f"max({name})"]
        assert found == expected
    assert dataset.aggregate({"*": "count"}) == {"count(*)": table.num_rows}


def uncovered(dataset: pennon.LanceDataset) -> int:
    """Return how many rows the statistics of a column do not cover."""
    return int(dataset.index_statistics("n_statistics")["num_unindexed_rows"])


def test_writes_and_compactions_update_statistics(
    tmp_path: Path, read: list[tuple[str, int]]
) -> None:
    uri = tmp_path / "t"
    made = pennon.write_dataset(rows(0), uri, max_rows_per_file=25, auto_statistics=True)
    names = {each.name for each in made.describe_indices()}
    assert names == {f"{name}_statistics" for name in ("n", "d", "b", "f", "s")}
    made.insert(rows(100))
    assert uncovered(made) == 0
    check(made, EXACT)
    assert read == []
    check(made, ["f", "s"])
    assert {name for name, _ in read} == {"f", "s"}
    made.optimize.compact_files()
    assert len(made.get_fragments()) == 1
    assert uncovered(made) == 0
    read.clear()
    check(made, EXACT)
    assert read == []
    made.validate()


def test_statistics_read_the_uncovered_rows(tmp_path: Path, read: list[tuple[str, int]]) -> None:
    made = pennon.write_dataset(rows(0), tmp_path / "t", auto_statistics=True)
    made.insert(rows(100), auto_statistics=False)
    assert uncovered(made) == 40
    check(made, ["n"])
    assert read == [("n", 40)]
    read.clear()
    made.delete("n = 39")
    check(made, ["n"])
    assert read == [("n", 79)]
    made.update({"n": "n + 1000"}, where="n = 138")
    check(made, EXACT)
    made.merge_insert("s").when_matched_update_all().write_mode("rewrite_columns").execute(
        pa.table({"s": ["001"], "n": [-5]})
    )
    check(made, EXACT)
    made.insert(rows(300))  # brings all up to date
    assert uncovered(made) == 0
    check(made)


def test_table_config_enables_statistics(tmp_path: Path) -> None:
    made = pennon.write_dataset(rows(0), tmp_path / "t")
    check(made)
    assert not made.describe_indices()
    made.update_config({"pennon.auto_statistics": "true"})
    made.create_scalar_index("n", "ZONEMAP", "mine")
    again = pennon.write_dataset(rows(100), tmp_path / "t", mode="append")
    statistics = {each.name: each for each in again.describe_indices()}
    assert {"mine", "d_statistics"} <= statistics.keys()
    assert "n_statistics" not in statistics
    assert again.index_statistics("mine")["num_unindexed_rows"] == 0
    check(again)


def test_filter_prunes_rows_by_statistics(tmp_path: Path) -> None:
    made = pennon.write_dataset(rows(0), tmp_path / "t", max_rows_per_file=10, auto_statistics=True)
    assert "n_statistics" in made.scanner(filter="n = 33").explain_plan()
    assert made.to_table(filter="n = 33")["s"].to_pylist() == ["033"]


def test_statistics_of_empty_and_null_columns(tmp_path: Path) -> None:
    nothing = pennon.write_dataset(rows(0).slice(0, 0), tmp_path / "none", auto_statistics=True)
    assert nothing.aggregate({"n": ["count", "min"], "*": "count"}) == {
        "count(n)": 0,
        "min(n)": None,
        "count(*)": 0,
    }
    nulls = pennon.write_dataset(
        pa.table({"n": pa.nulls(9, pa.int32())}), tmp_path / "null", auto_statistics=True
    )
    assert nulls.aggregate({"n": ["null_count", "max"]}) == {"null_count(n)": 9, "max(n)": None}
    assert pc.is_null(nulls.to_table()["n"]).to_pylist() == [True] * 9


def test_invalid_aggregates_are_refused(tmp_path: Path) -> None:
    made = pennon.write_dataset(rows(0), tmp_path / "t")
    with pytest.raises(
        ArgumentError, match="'median' of column 'n'; there are count, null_count, min, max"
    ):
        made.aggregate({"n": "median"})
    with pytest.raises(ArgumentError, match="there are count"):
        made.aggregate({"*": "min"})
    with pytest.raises(ColumnTypeError, match="'l' of"):
        made.aggregate({"l": "min"})
    with pytest.raises(ArgumentError, match="nope"):
        made.aggregate({"nope": "min"})
