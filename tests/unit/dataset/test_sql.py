"""SQL over a table: columns and conditions that are read, statements that are refused, options."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.dataset.sql import SqlTable
from pennon.errors import ArgumentError

ROWS = pa.table(
    {
        "id": [1, 2, None, 4, 5, 6, 7, 8],
        "name": ["a", "b", None, "d", "e", "f", "g", "h"],
        "x": [1.0, math.nan, None, -1.0, 2.0, 3.0, math.inf, -math.inf],
        "s": [{"n": n} for n in range(8)],
    }
)


@pytest.fixture
def table(tmp_path: Path) -> pennon.LanceDataset:
    return pennon.write_dataset(ROWS, str(tmp_path / "t"), max_rows_per_file=3)


def ran(table: pennon.LanceDataset, text: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = table.sql(text).build().to_stream_reader().read_all().to_pydict()
    return found


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("id > 5", [6, 7, 8]),
        ("id NOT IN (1, 2, 4, 5, 6)", [7, 8]),
        ("id NOT IN (1, NULL)", []),
        ("id IN (1, NULL)", [1]),
        ("NOT (id = 1)", [2, 4, 5, 6, 7, 8]),
        ("x > 1.5", [2, 5, 6, 7]),
        ("x = 'NaN'", [2]),
        ("name LIKE 'a%' OR id = 8", [1, 8]),
        ("name IS NULL", [None]),
        ("s['n'] = 3", [4]),
        ("id + 1 = 3", [2]),
    ],
)
def test_sql_condition_finds_rows_as_sql_does(
    table: pennon.LanceDataset, condition: str, ids: list[int | None]
) -> None:
    assert ran(table, f"SELECT id FROM dataset WHERE {condition}") == {"id": ids}


def test_sql_reads_the_columns_and_rows_that_it_uses(
    table: pennon.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, str]] = []
    scan = SqlTable.scanner

    def noted(self: SqlTable, *given: Any, **options: Any) -> Any:
        asked.append((options.get("columns"), str(options.get("filter"))))
        return scan(self, *given, **options)

    monkeypatch.setattr(SqlTable, "scanner", noted)
    assert ran(table, "SELECT name FROM dataset WHERE id > 6 AND upper(name) = 'H'") == {
        "name": ["h"]
    }
    assert asked[-1] == (["name"], "(id > 6)")


def test_sql_joins_groups_windows_and_counts(table: pennon.LanceDataset) -> None:
    assert ran(table, "SELECT count(*) AS n, count(id) AS k FROM dataset") == {"n": [8], "k": [7]}
    joined = "SELECT a.id FROM dataset a JOIN dataset b ON a.id = b.id - 1 ORDER BY 1"
    assert ran(table, joined) == {"id": [1, 4, 5, 6, 7]}
    grouped = (
        "SELECT id % 2 AS odd, sum(id) AS total FROM dataset WHERE id > 0 GROUP BY 1 ORDER BY 1"
    )
    assert ran(table, grouped) == {"odd": [0, 1], "total": [20, 13]}
    summed = "SELECT sum(id) OVER (ORDER BY id) AS total FROM dataset WHERE id < 4"
    assert ran(table, summed) == {"total": [1, 3]}


def test_sql_row_ids_and_addresses_are_columns_on_request(table: pennon.LanceDataset) -> None:
    query = table.sql("SELECT _rowid, _rowaddr FROM dataset WHERE _rowaddr > 4294967296")
    with pytest.raises(ArgumentError, match="No field named _rowaddr"):
        query.build()
    found = query.with_row_id().with_row_addr().build().to_stream_reader().read_all()
    assert found["_rowid"].to_pylist() == found["_rowaddr"].to_pylist()
    assert found["_rowaddr"].to_pylist()[:2] == [4294967297, 4294967298]
    plain = table.sql("SELECT * FROM dataset").build().to_stream_reader()
    assert plain.schema.names == ROWS.schema.names


def test_sql_table_name_and_batch_size_are_set(table: pennon.LanceDataset) -> None:
    query = table.sql("SELECT id FROM things").table_name("things").batch_size(2).build()
    assert max(batch.num_rows for batch in query.to_batch_records()) == 2
    assert sum(batch.num_rows for batch in query.to_batch_records()) == 8
    with pytest.raises(ArgumentError, match=r"table .*dataset.* not found"):
        table.sql("SELECT id FROM dataset").table_name("things").build()


def test_sql_of_a_version_and_of_a_deleted_row(table: pennon.LanceDataset) -> None:
    old = table.version
    table.delete("id = 4")
    assert ran(table, "SELECT count(*) AS n FROM dataset") == {"n": [7]}
    assert ran(table.checkout_version(old), "SELECT count(*) AS n FROM dataset") == {"n": [8]}


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO dataset SELECT * FROM dataset",
        "DELETE FROM dataset",
        "CREATE TABLE other AS SELECT 1",
        "CREATE EXTERNAL TABLE f STORED AS CSV LOCATION '/etc/passwd'",
        "COPY dataset TO 'rows.csv'",
        "SET datafusion.execution.batch_size = 1",
        "SELECT * FROM '/etc/passwd'",
        "SELECT nothing FROM dataset",
        "SELEC 1",
        "",
    ],
)
def test_sql_statement_other_than_a_query_is_refused(
    table: pennon.LanceDataset, text: str, tmp_path: Path
) -> None:
    with pytest.raises(ArgumentError, match="cannot run the SQL statement"):
        table.sql(text).build()
    assert table.latest_version == 1
    assert not Path("rows.csv").exists()


def test_sql_options_with_wrong_values_are_refused(table: pennon.LanceDataset) -> None:
    with pytest.raises(ArgumentError, match="there is no blob_handling 'all'"):
        table.sql("SELECT 1").blob_handling("all")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="batch_size"):
        table.sql("SELECT 1").batch_size(0)


def test_sql_shows_blobs_as_descriptions_or_bytes(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "blob": pa.array([b"one", b"two"], pa.large_binary())})
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = rows.cast(pa.schema([rows.schema.field("id"), field]))
    made = pennon.write_dataset(rows, str(tmp_path / "b"), data_storage_version="2.1")
    query = made.sql("SELECT blob FROM dataset WHERE id = 2")
    (described,) = query.build().to_batch_records()[0]["blob"].to_pylist()
    assert described["size"] == 3
    shown = query.blob_handling("all_binary").build().to_batch_records()[0]
    assert shown["blob"].to_pylist() == [b"two"]
