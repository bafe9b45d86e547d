"""Partitions of a read: split for the cores, and grouped if there are too many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.core.units import MIB
from pennon.scan.read.tasks import bytes_per_row
from pennon.scan.snapshot import Snapshot
from pennon.spark.source.partitions import MIN_SPLIT_BYTES, Parallelism, Partition, plan_partitions
from pennon.spark.source.scan_task import MAX_BATCH_BYTES, open_snapshot, plan_table_scan
from pennon.spark.types import arrow_schema, spark_schema

LIMIT = 128 * MIB


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Snapshot]:
    """One fragment of 12 MiB; 100 small ones; none."""
    folder = tmp_path_factory.mktemp("partitions")
    noise = pa.table({"a": pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(1024), 12_288, [None, pa.py_buffer(bytes(range(256)) * 4 * 12_288)])})  # fmt: skip
    pennon.write_dataset(noise, folder / "large.lance", data_storage_version="2.0")
    pennon.write_dataset(
        pa.table({"a": range(10_000)}), folder / "many.lance", max_rows_per_file=100
    )
    pennon.write_dataset(pa.table({"a": pa.array([], pa.int64())}), folder / "none.lance")
    return {path.stem: open_snapshot(str(path), {}) for path in Path(folder).iterdir()}


def rows_of(partitions: list[Partition]) -> list[int]:
    return [sum(task.rows for task in partition) for partition in partitions]


def assert_in_order(snapshot: Snapshot, partitions: list[Partition]) -> None:
    """Every row of every fragment once, neighbours together."""
    ranges = [(task.fragment.id, task.start, task.end) for tasks in partitions for task in tasks]
    expected = [(f.id, n) for f in snapshot.manifest.fragments for n in range(f.physical_rows or 0)]
    assert [(f, n) for f, start, end in ranges for n in range(start, end)] == expected


def test_a_large_fragment_is_split_for_the_cores_but_not_below_4_mib(
    tables: dict[str, Snapshot],
) -> None:
    large = tables["large"]
    assert bytes_per_row(large.manifest.fragments[0]) in (1024, 1025)
    for cores, count in ((1, 1), (2, 2), (3, 3), (64, 4)):
        partitions = plan_partitions(large, LIMIT, Parallelism.of_cores(cores))
        assert_in_order(large, partitions)
        assert len(partitions) in (count, count - (cores == 64))
        assert max(rows_of(partitions)) - min(rows_of(partitions)) <= count
    assert MIN_SPLIT_BYTES == 4 * MIB
    by_bytes = plan_partitions(large, MIB, Parallelism.of_cores(1))
    assert 12 <= len(by_bytes) <= 13
    assert_in_order(large, by_bytes)


def test_small_fragments_are_grouped_into_partitions(tables: dict[str, Snapshot]) -> None:
    many = tables["many"]
    for most, count in ((1, 4), (2, 4), (8, 8), (64, 64), (100, 100), (1000, 100)):
        partitions = plan_partitions(many, LIMIT, Parallelism(1, most))
        assert_in_order(many, partitions)
        assert len(partitions) == count, most
        assert max(rows_of(partitions)) - min(rows_of(partitions)) <= 100
    assert len(plan_partitions(many, 1, Parallelism(1, 1))) == 10_000


def test_one_task_reads_little_of_a_table(tmp_path: Path) -> None:
    rows = 1_000_000
    texts = pa.array(["text"]).take(pa.array(np.zeros(rows, np.int64)))
    table = pa.table({"a": np.random.default_rng(1).random(rows), "b": range(rows), "t": texts})

    def count(files: int, names: list[str], limit: int = LIMIT) -> int:
        path = tmp_path / str(files)
        if not path.exists():
            each = rows // files
            pennon.write_dataset(table, path, data_storage_version="2.0", max_rows_per_file=each)
        snapshot = open_snapshot(str(path), {})
        columns = pa.schema([table.schema.field(name) for name in names])
        partitions = plan_partitions(snapshot, limit, Parallelism.of_cores(2), columns)
        assert sum(rows_of(partitions)) == rows
        return len(partitions)

    assert count(4, ["a"]) == 1, "8 MB in four fragments"
    assert count(5, ["a", "b"]) == 2, "16 MB in five"
    assert count(1, ["a", "b"]) == 1, "16 MB in one"
    assert count(8, ["a"]) == 2, "each fragment has to be opened"
    assert count(4, ["t"]) == 2, "much may be done with each text"
    assert count(4, ["a"], limit=4 * MIB) > 1, "the limit of a partition holds"


def test_a_table_without_rows_has_no_partition(tables: dict[str, Snapshot]) -> None:
    assert plan_partitions(tables["none"], LIMIT, Parallelism.of_cores(2)) == []


def test_batches_have_16384_rows_of_fixed_width_columns(
    tmp_path: Path,
) -> None:
    texts = pa.array([f"{n:05}" * 1000 for n in range(20_000)])
    pennon.write_dataset(pa.table({"id": range(20_000), "text": texts}), tmp_path / "t.lance")
    snapshot = open_snapshot(str(tmp_path / "t.lance"), {})
    partitions = plan_partitions(snapshot, LIMIT, Parallelism.of_cores(1))

    def sizes(names: list[str]) -> list[tuple[int, int]]:
        columns = pennon.dataset(tmp_path / "t.lance").schema
        schema = arrow_schema(spark_schema(pa.schema([columns.field(name) for name in names])))
        scan = plan_table_scan(snapshot, schema, None)
        return [(b.num_rows, b.nbytes) for tasks in partitions for b in scan.read(tasks)]

    assert [rows for rows, _ in sizes(["id"])] == [16_384, 3616]
    both = sizes(["id", "text"])
    assert sum(rows for rows, _ in both) == 20_000
    assert max(size for _, size in both) <= MAX_BATCH_BYTES * 1.01
