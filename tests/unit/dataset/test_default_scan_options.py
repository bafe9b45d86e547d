"""Tables that are opened with default scan options, as engines read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import pennon

ROWS = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
DEFAULTS: dict[str, dict[str, Any]] = {
    "row id": {"with_row_id": True},
    "row address": {"with_row_address": True},
    "both": {"with_row_id": True, "with_row_address": True, "batch_size": 1},
}


@pytest.fixture(params=DEFAULTS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> pennon.LanceDataset:
    uri = str(tmp_path / "t")
    pennon.write_dataset(ROWS, uri, max_rows_per_file=2)
    return pennon.dataset(uri, default_scan_options=DEFAULTS[request.param])


def test_duckdb_reads_a_table_with_row_ids_by_default(table: pennon.LanceDataset) -> None:
    """It gets exactly the columns that it names, the id or address if that is among them."""
    name = table.schema.names[-1]
    queries = {
        "select a from table_ order by a": [(1,), (2,), (3,)],
        "select b from table_ where a > 1 order by a": [("y",), ("z",)],
        "select count(*) from table_": [(3,)],
        "select b, a from table_ order by a desc limit 1": [("z", 3)],
        f"select a, {name} < 100 from table_ where {name} = 0": [(1, True)],
    }
    connection = duckdb.connect().register("table_", table)
    for query, rows in queries.items():
        assert connection.sql(query).fetchall() == rows, query
    assert connection.sql("select * from table_").columns == table.schema.names


def test_polars_reads_a_table_with_row_ids_by_default(table: pennon.LanceDataset) -> None:
    frame = pl.scan_pyarrow_dataset(table)
    assert frame.filter(pl.col("a") > 1).select("b").collect()["b"].to_list() == ["y", "z"]


def test_default_row_id_options_beside_named_columns(table: pennon.LanceDataset) -> None:
    """A scanner has the columns that are named; `to_table` adds the defaults to them, as pylance does."""
    extra = table.schema.names[2:]
    assert table.scanner(columns=["a"]).to_table().column_names == ["a"]
    assert table.scanner(columns=["a", *extra]).to_table().column_names == ["a", *extra]
    assert table.scanner().to_table().column_names == ["a", "b", *extra]
    assert table.scanner(["a"], with_row_id=True).to_table().column_names == ["a", "_rowid"]
    assert table.to_table(columns=["a"]).column_names == ["a", *extra]
    assert next(iter(table.to_batches(["a"]))).schema.names == ["a", *extra]
    assert list(table.to_pandas(columns=["a"]).columns) == ["a", *extra]
    assert table.to_table(["a"], with_row_id=False, with_row_address=False).column_names == ["a"]
