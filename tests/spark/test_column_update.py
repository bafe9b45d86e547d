"""An update of few columns of all rows writes these columns; the rows are those of pylance's update."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import pennon
from pennon.ops.rows import rewrite_all
from pennon.spark import LanceTable
from tests.spark.failing import Interloper
from tests.spark.small_table import ROWS as ROWS_OF_MAKE
from tests.spark.small_table import make
from tests.spark.small_table import rows_of as small_rows_of

ROWS, WIDTH, FRAGMENTS = 20_000, 50, 4
DELETED = "c1 % 7 = 3"


def wide(uri: str, version: Any = "2.1", *, stable: bool = False) -> None:
    """Rows of many random numbers and a text, some of them deleted."""
    dice = np.random.default_rng(7)
    columns = {f"c{n}": pa.array(dice.integers(0, 1 << 60, ROWS)) for n in range(WIDTH)}
    texts = pa.array([None if n % 9 == 0 else f"text {n}" for n in range(ROWS)])
    lance.write_dataset(
        pa.table({"id": pa.array(range(ROWS)), "text": texts, **columns}),
        uri,
        max_rows_per_file=ROWS // FRAGMENTS,
        data_storage_version=version,
        enable_stable_row_ids=stable,
    )
    lance.dataset(uri).delete(DELETED)


def size_of(uri: str) -> int:
    """The bytes of all data files."""
    return sum(path.stat().st_size for path in Path(uri, "data").iterdir())


def rows_of(uri: str, *, with_ids: bool = False) -> list[dict[str, Any]]:
    """The rows as pylance reads them, by id."""
    table = lance.dataset(uri)
    table.validate()
    rows = table.to_table(with_row_id=with_ids).to_pylist()
    return sorted(rows, key=lambda row: int(row["id"]))


@pytest.mark.parametrize(
    ("version", "stable"),
    [
        ("2.1", True),
        *(
            pytest.param(v, s, marks=pytest.mark.slow)
            for v in ("2.0", "2.2")
            for s in (True, False)
        ),
    ],
)
def test_column_update_writes_only_the_changed_column(
    spark: SparkSession, uri: str, tmp_path: Path, version: str, stable: bool
) -> None:
    theirs = str(tmp_path / "theirs.lance")
    wide(uri, version, stable=stable)
    copytree(uri, theirs)
    before, ids = size_of(uri), [(r["id"], r["_rowid"]) for r in rows_of(uri, with_ids=True)]
    table = LanceTable.forPath(spark, uri)
    (told,) = table.update(set={"c7": "c7 % 1000 + id"}).collect()
    written = size_of(uri) - before
    lance.dataset(theirs).update({"c7": "c7 % 1000 + id"})
    assert written < (size_of(theirs) - before) / 20
    assert rows_of(uri) == rows_of(theirs)
    assert [(r["id"], r["_rowid"]) for r in rows_of(uri, with_ids=True)] == ids
    assert told.num_affected_rows == len(ids) < ROWS
    if stable:
        changed = lance.dataset(uri).to_table(["_row_last_updated_at_version"])
        assert set(changed.column(0).to_pylist()) == {3}
    (history,) = table.history(1).collect()
    assert history.operation == "UPDATE"
    assert history.operationMetrics["numUpdatedRows"] == str(len(ids))

    table.update(set={"c7": sf.lit(5), "text": sf.upper("text")})
    lance.dataset(theirs).update({"c7": "5", "text": "upper(text)"})
    table.update("id < 100", {"text": "'few'"})
    lance.dataset(theirs).update({"text": "'few'"}, where="id < 100")
    assert rows_of(uri) == rows_of(theirs)
    files = [len(each.data_files()) for each in pennon.dataset(uri).get_fragments()]
    assert files == [2] * FRAGMENTS + [1]  # what the first update wrote is of no use
    table.compact()
    assert rows_of(uri) == rows_of(theirs)


def test_column_update_rewrites_rows_when_cheaper(spark: SparkSession, uri: str) -> None:
    """Most columns; or a few rows in many fragments, which become one."""
    wide(uri)
    table = LanceTable.forPath(spark, uri)
    table.update(set={f"c{n}": "id" for n in range(WIDTH)})
    assert {len(each.data_files()) for each in pennon.dataset(uri).get_fragments()} == {1}
    small = f"{uri}.small"
    pennon.write_dataset(pennon.dataset(uri).head(100), small, max_rows_per_file=10)
    LanceTable.forPath(spark, small).update(set={"c1": "id"})
    assert len(pennon.dataset(small).get_fragments()) < 10


def test_column_update_invalidates_the_index_of_the_column(spark: SparkSession, uri: str) -> None:
    wide(uri)
    lance.dataset(uri).create_scalar_index("c7", "BTREE")
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    LanceTable.forPath(spark, uri).update(set={"c7": "id"})
    one, other = (row["id"] for row in rows_of(uri)[500:502])
    for library in (lance, pennon):
        found = library.dataset(uri).to_table(["id"], filter=f"c7 = {one} OR id = {other}")
        assert sorted(found.column(0).to_pylist()) == [one, other]


def test_column_update_by_window_function(spark: SparkSession, uri: str) -> None:
    wide(uri)
    LanceTable.forPath(spark, uri).update(set={"c1": "row_number() OVER (ORDER BY id)"})
    assert [row["c1"] for row in rows_of(uri)] == list(range(1, len(rows_of(uri)) + 1))


@pytest.mark.parametrize(
    ("meanwhile", "left"), [("delete key = 'b'", "acd"), ("update", "abcd"), ("compact", "abcd")]
)
def test_column_update_keeps_concurrent_changes(
    spark: SparkSession,
    uri: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: str,
    left: str,
) -> None:
    """The others win the race for the version; then the columns are written again."""
    monkeypatch.setattr(rewrite_all, "FILE_BYTES", 0)
    make(uri)
    interloper = Interloper(uri, meanwhile, str(tmp_path / "calls"))
    told = LanceTable.forPath(spark, uri).update(
        set={"value": sf.length(sf.udf(interloper, "string")("key")) + sf.col("value")}
    )
    assert interloper.has_come()
    new = [(k, v + 1 + 100 * (meanwhile == "update" and k == "a")) for k, v in ROWS_OF_MAKE]
    assert small_rows_of(uri) == [row for row in new if row[0] in left]
    assert told.collect() == [(len(left),)]
    assert LanceTable.forPath(spark, uri).history(1).collect()[0].operation == "UPDATE"
    last = pennon.dataset(uri).get_fragments()[-1]
    assert len(last.data_files()) == 2
