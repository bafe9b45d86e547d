"""Filters of Spark's scans prune fragments and rows like those of other scans."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import datasource as ds

import pennon
from pennon.scan.predicate import SqlPredicate
from pennon.scan.read.tasks import plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.spark.source.filters import condition_of
from pennon.spark.source.scan_task import (
    ConvertedPredicate,
    TableScan,
    arrow_schema_of,
    plan_table_scan,
)
from pennon.spark.types import arrow_schema, spark_schema
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore
from tests.unit.scan.remote import far_away

ROWS = 40_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    uri = tmp_path_factory.mktemp("scan") / "t"
    numbers = pa.array(range(ROWS))
    columns = {
        "id": numbers,
        "small": pa.array([n % 200 for n in range(ROWS)], pa.uint8()),
        "wide": [f"{n:0200}" for n in range(ROWS)],
    }
    pennon.write_dataset(pa.table(columns), uri, max_rows_per_file=ROWS // 2)
    return uri


def opened(folder: Path) -> tuple[Snapshot, CountingStore]:
    store = CountingStore(far_away(folder))
    snapshot = Snapshot(store, read_manifest(store))
    store.reset()
    return snapshot, store


def shown(snapshot: Snapshot) -> pa.Schema:
    return arrow_schema(spark_schema(arrow_schema_of(snapshot)))


def rows_of(scan: TableScan, snapshot: Snapshot) -> list[int]:
    condition = pickle.loads(pickle.dumps(scan.query.condition))
    travelled = replace(scan, query=replace(scan.query, condition=condition))
    batches = list(travelled.read(plan_tasks(snapshot)))
    assert all(batch.schema == scan.schema for batch in batches)
    return [value for batch in batches for value in batch["id"].to_pylist()]


def pushed_into(scan: TableScan, snapshot: Snapshot, *filters: ds.Filter) -> TableScan:
    schema = spark_schema(arrow_schema_of(snapshot))
    conditions = [condition_of(each, schema) for each in filters]
    return scan.where_all([each for each in conditions if each is not None])


def test_scan_reads_other_columns_for_matching_rows_only(folder: Path) -> None:
    snapshot, store = opened(folder)
    scan = plan_table_scan(snapshot, shown(snapshot), None)
    whole = list(scan.read(plan_tasks(snapshot)))
    assert sum(batch.num_rows for batch in whole) == ROWS
    everything = store.counts.read_bytes
    for some in (
        scan.where("id = 777"),
        pushed_into(scan, snapshot, ds.EqualTo(("id",), 777)),
    ):
        store.reset()
        found = list(some.read(plan_tasks(snapshot)))
        assert [batch["id"].to_pylist() for batch in found if batch.num_rows] == [[777]]
        assert store.counts.read_bytes < everything / 3


def test_scan_reads_columns_of_pushed_filters(folder: Path) -> None:
    snapshot, _ = opened(folder)
    schema = shown(snapshot)
    scan = plan_table_scan(snapshot, pa.schema([schema.field("id")]), None)
    assert scan.read_columns.names == ["id"]
    assert scan.where("id = 7").read_columns.names == ["id"]
    assert scan.where("small = 7 AND id < 9").read_columns.names == ["id", "small"]


def test_row_ids_rule_fragments_out(folder: Path) -> None:
    snapshot, store = opened(folder)
    scan = plan_table_scan(snapshot, shown(snapshot), None)
    assert rows_of(scan.where("_rowid = 5"), snapshot) == [5]
    store.reset()
    assert not list(scan.where("_rowid < 0").read(plan_tasks(snapshot)))
    assert not store.counts.read_bytes


def test_pushed_filters_on_converted_types_compare_as_spark(folder: Path) -> None:
    snapshot, _ = opened(folder)
    scan = plan_table_scan(snapshot, shown(snapshot), None)
    both = pushed_into(scan, snapshot, ds.EqualTo(("small",), 7), ds.LessThan(("id",), 1000))
    assert both.query.condition is not None
    assert isinstance(both.query.condition.predicate, ConvertedPredicate)
    assert rows_of(both, snapshot) == [7, 207, 407, 607, 807]
    plain = pushed_into(scan, snapshot, ds.LessThan(("id",), 1000))
    assert plain.query.condition is not None
    assert isinstance(plain.query.condition.predicate, SqlPredicate)
    assert pushed_into(scan, snapshot) is scan
