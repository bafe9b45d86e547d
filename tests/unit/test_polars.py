"""Lazy frames of Polars over a table: the same rows as a frame in memory, and what the table was asked."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import pennon
from pennon.dataset.lance_dataset import LanceDataset
from pennon.polars import scan_lance

COUNT = 1000
ROWS = pa.table(
    {
        "id": range(COUNT),
        "x": [
            None if n % 11 == 0 else float("nan") if n % 13 == 0 else n / 7 for n in range(COUNT)
        ],
        "word": [None if n % 7 == 0 else f"w{n % 10}" for n in range(COUNT)],
        "ok": [n % 3 == 0 for n in range(COUNT)],
        "when": pa.array([n * 86_400_000_000 for n in range(COUNT)], pa.timestamp("us")),
        "day": pa.array(range(COUNT), pa.int32()).cast(pa.date32()),
        "vec": pa.array([[float(n), 1.0] for n in range(COUNT)], pa.list_(pa.float32(), 2)),
    }
)
C = pl.col
PUSHED: dict[str, pl.Expr] = {
    "comparison": C("id") >= 990,
    "other side of zero": C("x") != 3.0,
    "nan is above all": C("x") > 140.0,
    "and": (C("id") > 10) & (C("word") == "w3"),
    "or": (C("id") < 3) | (C("id") > 997),
    "not": ~(C("id") > 5),
    "not of null": ~(C("word") == "w3"),
    "null": C("word").is_null(),
    "not null": C("word").is_not_null(),
    "boolean column": C("ok") & (C("id") < 10),
    "list of numbers": C("id").is_in([1, 5, 2000]),
    "list of texts": C("word").is_in(["w1", "w2"]),
    "between": C("id").is_between(5, 9),
    "beginning": C("word").str.starts_with("w3"),
    "end": C("word").str.ends_with("3"),
    "part": C("word").str.contains("3", literal=True),
    "time": C("when") > datetime(1972, 1, 1),
    "day": C("day") <= date(1970, 1, 5),
}
KEPT: dict[str, pl.Expr] = {
    "two columns": C("id") > C("x"),
    "pattern": C("word").str.contains("w[34]"),
    "null among the values": C("word").is_in(["w1", None]),
    "nan as a value": C("x").is_in([float("nan")]),
    "arithmetic": C("id") % 100 == 3,
    "half open": C("id").is_between(5, 9, closed="none"),
    "window": C("id") == C("id").max(),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a table of four fragments."""
    uri = tmp_path_factory.mktemp("polars") / "t.lance"
    return pennon.write_dataset(ROWS, uri, max_rows_per_file=250)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return a list of the options of each scan."""
    seen: list[dict[str, Any]] = []
    scanner = LanceDataset.scanner

    def recorded(self: LanceDataset, *args: Any, **options: Any) -> Any:
        seen.append(options)
        return scanner(self, *args, **options)

    monkeypatch.setattr(LanceDataset, "scanner", recorded)
    return seen


@pytest.mark.parametrize("name", [*PUSHED, *KEPT])
def test_polars_filter_finds_the_rows_that_polars_finds_in_memory(table: Any, name: str) -> None:
    predicate = (PUSHED | KEPT)[name]
    frame = pl.DataFrame(pl.from_arrow(ROWS))
    expected = frame.lazy().filter(predicate).select("id", "word").collect()
    found = scan_lance(table).filter(predicate).select("id", "word").collect()
    assert found.equals(expected)


@pytest.mark.parametrize("name", PUSHED)
def test_polars_filter_becomes_a_filter_of_the_table(
    table: Any, asked: list[dict[str, Any]], name: str
) -> None:
    scan_lance(table).filter(PUSHED[name]).select("id").collect()
    assert asked[-1]["filter"] is not None


def test_polars_query_reads_its_columns_and_head_only(
    table: Any, asked: list[dict[str, Any]]
) -> None:
    found = scan_lance(table).select("id").head(3).collect()
    assert found["id"].to_list() == [0, 1, 2]
    assert (asked[-1]["columns"], asked[-1]["limit"]) == (["id"], 3)


def test_polars_filter_that_is_known_in_part_is_pushed_in_part(
    table: Any, asked: list[dict[str, Any]]
) -> None:
    query = scan_lance(table).filter((C("id") < 500) & (C("id") % 100 == 3))
    assert query.collect()["id"].to_list() == [3, 103, 203, 303, 403]
    assert "500" in str(asked[-1]["filter"])


def test_polars_frame_with_sql_filter_has_both_filters(table: Any) -> None:
    query = scan_lance(table, filter="id < 10").filter(C("id") > 7)
    assert query.collect()["id"].to_list() == [8, 9]


def test_polars_filter_of_a_search_applies_to_the_found_rows(table: Any) -> None:
    near = {"column": "vec", "q": [5.0, 1.0], "k": 3}
    query = scan_lance(table, nearest=near, with_row_id=True)
    assert query.filter(C("id") > 5).select("id").collect()["id"].to_list() == [6]
    assert set(query.collect_schema()) == {*ROWS.column_names, "_distance", "_rowid"}
    assert query.select("_rowid", "_distance").head(2).collect().height == 2


def test_polars_frame_of_a_uri_opens_the_given_version(tmp_path: Path) -> None:
    pennon.write_dataset({"id": [1]}, tmp_path / "t")
    pennon.write_dataset({"id": [2]}, tmp_path / "t", mode="append")
    assert scan_lance(tmp_path / "t").collect().height == 2
    assert scan_lance(tmp_path / "t", version=1).collect().height == 1


def test_polars_joins_and_groups_a_table(table: Any) -> None:
    query = scan_lance(table).group_by("word").agg(C("id").sum()).sort("word")
    expected = pl.DataFrame(pl.from_arrow(ROWS)).group_by("word").agg(C("id").sum()).sort("word")
    assert query.collect().equals(expected)
    assert query.collect(engine="streaming").equals(expected)
