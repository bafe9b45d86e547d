"""The writers of the data source without Spark: planned, written, pickled, committed."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as st

import pennon
from pennon.errors import (
    ArgumentError,
    InvalidSchemaError,
    SchemaMismatchError,
    UnsupportedError,
)
from pennon.spark.source.options import parse_write_options
from pennon.spark.source.writer_plan import plan_writer
from pennon.spark.types import spark_schema

OLD = pa.table(
    {
        "day": ["mon", "mon", "tue", None, "wed"],
        "n": pa.array([1, 2, 3, 4, 5], pa.int32()),
        "s": pa.array([{"x": 1.5}] * 5, pa.struct([("x", pa.float32())])),
    }
)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table of three fragments."""
    where = str(tmp_path / "t.lance")
    pennon.write_dataset(OLD, where, max_rows_per_file=2)
    return where


def write(uri: str, rows: pa.Table, mode: str = "append", **options: str) -> None:
    """Write as Spark does: the writer is pickled on its way to two tasks and to the commit."""
    given = parse_write_options({"path": uri, **options})
    writer = plan_writer(given, spark_schema(rows.schema), overwrite=mode == "overwrite")
    wire = pickle.dumps(writer)
    half = rows.num_rows // 2
    parts = [rows.slice(0, half), rows.slice(half)]
    written = [pickle.loads(wire).write(iter(part.to_batches())) for part in parts]
    pickle.loads(wire).commit(written)


def rows_of(uri: str) -> list[tuple[Any, ...]]:
    table = pennon.dataset(uri)
    table.validate()
    columns = table.to_table().to_pydict()
    return sorted(zip(columns["day"], columns["n"], strict=True), key=lambda row: row[0] or "")


def days(*pairs: tuple[str | None, int]) -> pa.Table:
    return pa.table({"N": pa.array([n for _, n in pairs]), "day": [day for day, _ in pairs]})


def test_rows_of_a_condition_are_replaced(uri: str) -> None:
    write(uri, days(("mon", 10), ("mon", 11)), "overwrite", replaceWhere="day = 'mon'")
    assert rows_of(uri) == [(None, 4), ("mon", 10), ("mon", 11), ("tue", 3), ("wed", 5)]
    assert pennon.dataset(uri).version == 2


def test_replace_where_with_rows_outside_the_condition_is_refused(uri: str) -> None:
    wrong = days(("mon", 10), ("tue", 11), (None, 12), ("mon", 13))
    message = (
        r"2 rows of the DataFrame do not satisfy day = 'mon', for example \{'N': 11, 'day': 'tue'\}"
    )
    with pytest.raises(ArgumentError, match=message):
        write(uri, wrong, "overwrite", replaceWhere="day = 'mon'")
    assert pennon.dataset(uri).version == 1


def test_overwrite_by_replaces_rows_with_equal_keys(uri: str) -> None:
    write(uri, days(("mon", 10), (None, 11), ("sun", 12)), "overwrite", overwrite_by="DAY")
    assert rows_of(uri) == [(None, 11), ("mon", 10), ("sun", 12), ("tue", 3), ("wed", 5)]
    assert pennon.dataset(uri).version == 2


def test_an_append_widens_and_adds_in_one_version(uri: str) -> None:
    inner = pa.array([{"X": 0.1, "y": True}], pa.struct([("X", pa.float64()), ("y", pa.bool_())]))
    new = pa.table({"n": pa.array([1 << 40]), "s": inner, "w": ["late"]})
    with pytest.raises(SchemaMismatchError, match="'s' has no field 'y'"):
        write(uri, new.drop_columns(["w"]))
    write(uri, new, mergeSchema="true")
    table = pennon.dataset(uri)
    assert table.version == 2
    found = table.to_table()
    assert found.schema.field("n").type == pa.int64()
    assert found.schema.field("s").type == pa.struct([("x", pa.float64()), ("y", pa.bool_())])
    assert found.column("n").to_pylist() == [1, 2, 3, 4, 5, 1 << 40]
    assert found.column("s").to_pylist() == [{"x": 1.5, "y": None}] * 5 + [{"x": 0.1, "y": True}]
    assert found.column("w").to_pylist() == [None] * 5 + ["late"]


def test_overwrite_keeps_column_types_without_overwrite_schema(uri: str) -> None:
    write(uri, days(("mon", 10)), "overwrite")
    assert pennon.dataset(uri).schema == OLD.schema
    assert rows_of(uri) == [("mon", 10)]
    write(uri, days(("mon", 10)), "overwrite", overwriteSchema="true")
    assert pennon.dataset(uri).schema == pa.schema([("N", pa.int64()), ("day", pa.string())])


def test_write_of_columns_that_differ_by_case_is_refused(uri: str) -> None:
    twice = st.StructType([st.StructField("a", st.LongType()), st.StructField("A", st.LongType())])
    with pytest.raises(InvalidSchemaError, match="'a' and 'A'"):
        plan_writer(parse_write_options({"path": uri}), twice, overwrite=True)


def test_a_frame_without_columns_is_refused(uri: str) -> None:
    with pytest.raises(InvalidSchemaError, match="the DataFrame has no columns"):
        plan_writer(parse_write_options({"path": uri}), st.StructType([]), overwrite=False)


def test_stable_row_ids_are_for_new_tables(uri: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="chosen for a new table only"):
        write(uri, days(("mon", 1)), enable_stable_row_ids="true")
    new = str(tmp_path / "new.lance")
    for _ in range(2):
        write(new, days(("mon", 1), ("tue", 2)), enable_stable_row_ids="true")
    assert pennon.dataset(new).has_stable_row_ids
    ids = pennon.dataset(new).to_table(with_row_id=True).column("_rowid").to_pylist()
    assert sorted(ids) == [0, 1, 2, 3]
