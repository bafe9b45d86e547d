"""Statistics of 0.1 and zone maps of 2.0: pruned pages are not read, and rows are the same."""

from __future__ import annotations

import math
import random
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
from pennon.core.byte_ranges import ByteRange
from pennon.core.units import FragmentId
from pennon.dataset.lance_dataset import LanceDataset
from pennon.errors import ArgumentError, DataLossWarning
from pennon.expr.parse import parse_filter
from pennon.expr.prune import Pruner
from pennon.file.inspect import inspect_pages
from pennon.io import open_store
from pennon.io.fetch import plan_fetch
from pennon.io.limits import FetchLimits
from pennon.scan.plan import pruning as prune
from pennon.scan.plan.pruning import prune_pages
from pennon.scan.read.tasks import ScanTask, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.table.deletion import write_deletions
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore, LatencyStore

ROWS, GROUP = 3000, 100
SEED = 4
FILTERS = 40
MANY_FILTERS = 600


def _some(values: list[Any], every: int) -> list[Any]:
    return [None if number % every == 3 else value for number, value in enumerate(values)]


def table_of(rng: random.Random) -> pa.Table:
    """Sorted, scattered and constant columns, with NULLs, empty text, NaN and signed zeros."""
    numbers = range(ROWS)
    texts = [["", "a", "ab", "x" * 70][n % 4] if n > ROWS // 2 else f"{n:05d}" for n in numbers]
    floats = [[0.0, -0.0, math.nan, n / 10, -math.inf][n % 5] for n in numbers]
    fields = [
        pa.field("sorted", pa.int32()),
        pa.field("holes", pa.int64()),
        pa.field("f", pa.float64()),
        pa.field("smooth", pa.float32()),
        pa.field("t", pa.string()),
        pa.field("never", pa.large_string(), nullable=False),
        pa.field("b", pa.bool_()),
        pa.field("d", pa.date32()),
        pa.field("m", pa.decimal128(10, 2)),
        pa.field("s", pa.struct([("x", pa.int16()), ("y", pa.string())])),
        pa.field("u", pa.uint8()),
    ]
    columns = [
        list(numbers),
        _some([n // 7 for n in numbers], 150),
        floats,
        [n / 3 for n in numbers],
        _some(texts, 11),
        texts,
        [n > 1234 for n in numbers],
        [date(2020, 1, 1) + timedelta(n // 30) for n in numbers],
        [Decimal(n) / 4 for n in numbers],
        [{"x": n // 100, "y": str(n // 500)} for n in numbers],
        [rng.randrange(256) for _ in numbers],
    ]
    pairs = zip(columns, fields, strict=True)
    return pa.table([pa.array(c, f.type) for c, f in pairs], pa.schema(fields))


LITERALS = {
    "sorted": ["0", "1500", "2999", "5000", "-1", "99.5"],
    "holes": ["0", "100", "428", "NULL"],
    "f": ["0", "100.5", "-1", "cast('nan' as double)"],
    "smooth": ["0", "500.0", "999"],
    "t": ["''", "'00700'", "'a'", "'x'", "'zz'"],
    "never": ["''", "'00700'", "'ab'"],
    "b": ["true", "false"],
    "d": ["date '2020-02-01'", "date '2019-01-01'"],
    "m": ["10", "500.25"],
    "s.x": ["0", "7", "29"],
    "s.y": ["'0'", "'3'"],
    "u": ["0", "255"],
}


def random_filter(rng: random.Random, depth: int = 0) -> str:
    if depth < 2 and rng.random() < 0.4:
        parts = [random_filter(rng, depth + 1) for _ in range(2)]
        return f"({rng.choice([' AND ', ' OR ']).join(parts)})"
    if rng.random() < 0.1:
        return f"NOT ({random_filter(rng, depth + 1)})"
    name = rng.choice(sorted(LITERALS))
    literals = LITERALS[name]
    shapes = [
        f"{name} {rng.choice(['=', '!=', '<', '<=', '>', '>='])} {rng.choice(literals)}",
        f"{name} BETWEEN {rng.choice(literals)} AND {rng.choice(literals)}",
        f"{name} IN ({rng.choice(literals)}, {rng.choice(literals)})",
        f"{name} IS NULL",
        f"{name} IS NOT NULL",
    ]
    return rng.choice(shapes)


@pytest.fixture(scope="module", params=["0.1", "2.0"])
def dataset(tmp_path_factory: pytest.TempPathFactory, request: Any) -> LanceDataset:
    """Return a table whose units have 100 rows: row groups, or zones that are pages, too."""
    folder = tmp_path_factory.mktemp("bounds") / "t"
    table = table_of(random.Random(SEED))
    batches = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(GROUP))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataLossWarning)
        pennon.write_dataset(
            batches,
            folder,
            data_storage_version=request.param,
            max_rows_per_file=ROWS // 2,
            **UNITS[request.param],
        )
    store = CountingStore(open_store(folder))
    return LanceDataset.of_snapshot(str(folder), Snapshot(store, _some_deleted(store)))


def _some_deleted(store: Any) -> Manifest:
    """Return the manifest with rows of the second fragment deleted, a whole row group among them."""
    manifest = read_manifest(store)
    dead = np.array([5, *range(250, 420), 1499], np.uint32)
    deleted = write_deletions(store, FragmentId(1), 1, dead)
    fragments: list[Fragment] = list(manifest.fragments)
    old = fragments[1]
    fragments[1] = Fragment(old.id, old.files, old.physical_rows, deleted)
    return Manifest(manifest.schema, manifest.version, tuple(fragments))


def _everything(_snapshot: Any, tasks: list[ScanTask], *_: Any) -> list[ScanTask]:
    return tasks


def _compare(dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch, seeds: range) -> int:
    """Compare filtered scans with those that read everything; return how many found rows."""
    found = 0
    for seed in seeds:
        condition = random_filter(random.Random(seed))
        pruned = dataset.to_table(filter=condition, with_row_id=True)
        with monkeypatch.context() as patched:
            patched.setattr(prune, "prune_pages", _everything)
            whole = dataset.to_table(filter=condition, with_row_id=True)
        assert pruned["_rowid"].equals(whole["_rowid"]), condition
        assert dataset.count_rows(condition) == whole.num_rows
        found += 0 < whole.num_rows < dataset.count_rows()
    return found


def test_filters_pruned_by_page_statistics_equal_full_scans(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _compare(dataset, monkeypatch, range(FILTERS)) > FILTERS / 3


@pytest.mark.slow
def test_many_filters_pruned_by_page_statistics_equal_full_scans(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    _compare(dataset, monkeypatch, range(FILTERS, MANY_FILTERS))


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("sorted >= 700 AND sorted < 730", 30),
        ("s.x = 3", 100),
        ("t = '00123' AND sorted < 1400", 1),
        ("d = date '2020-01-05'", 30),
        ("m < 5", 20),
        ("smooth < 5", 15),
        ("never = '00123' AND sorted < 1400", 1),
    ],
)
def test_few_pages_are_read(dataset: LanceDataset, condition: str, rows: int) -> None:
    columns = ["sorted", "smooth", "d", "m"]
    dataset.to_table()
    with pages_read(dataset) as whole:
        dataset.to_table(columns=columns)
    assert len(whole) == ROWS // GROUP * len(columns)
    with pages_read(dataset) as read:
        assert dataset.to_table(columns=columns, filter=condition).num_rows == rows
    tested = {name for name in LITERALS if f"{name} " in condition}
    assert 0 < len(read) <= len(tested | set(columns))


UNITS: dict[str, dict[str, Any]] = {
    "0.1": {"max_rows_per_group": GROUP},
    "2.0": {"rows_per_zone": GROUP, "data_cache_bytes": 1},
}


@pytest.mark.parametrize("version", UNITS)
def test_one_row_of_a_hundred_reads_three_pages_of_a_hundred(version: str, tmp_path: Path) -> None:
    """At most that, counted, of whatever hundredth of a sorted column."""
    rows = 200 * GROUP
    table = pa.table(
        {
            "n": range(rows),
            "t": [f"row {n:06d}" for n in range(rows)],
            "x": [n % 7 for n in range(rows)],
        }
    )
    batches = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(GROUP))
    pennon.write_dataset(batches, tmp_path, data_storage_version=version, **UNITS[version])
    store = CountingStore(open_store(tmp_path))
    counted = LanceDataset.of_snapshot(str(tmp_path), Snapshot(store, read_manifest(store)))
    with pages_read(counted) as whole:
        counted.to_table()
    assert len(whole) == 3 * 200
    for start in range(0, rows, rows // 13):
        for low, column in ((start, "n"), (f"'row {start:06d}'", "t")):
            high = start + rows // 100 if column == "n" else f"'row {start + rows // 100:06d}'"
            with pages_read(counted) as read:
                found = counted.to_table(filter=f"{column} >= {low} AND {column} < {high}")
            assert found == table.slice(start, rows // 100)
            assert len(read) <= 0.03 * len(whole)


@contextmanager
def pages_read(dataset: LanceDataset) -> Iterator[set[tuple[str, str, int]]]:
    """Count the pages of which a byte is asked for, by file, column and number."""
    found: set[tuple[str, str, int]] = set()
    with pytest.MonkeyPatch.context() as patched:
        asked: list[tuple[str, ByteRange]] = []
        patched.setattr(dataset.snapshot.store, "around_read", partial(_note, asked))
        yield found
    for path, number, extent in _pages(dataset):
        if any(
            file == path[0] and each.position < extent.end and extent.position < each.end
            for file, each in asked
        ):
            found.add((*path, number))


def _note(asked: list[tuple[str, ByteRange]], path: str, requests: Any) -> None:
    asked += [(path, group) for group in plan_fetch(requests, FetchLimits(0, 1 << 62)).groups]


def _pages(dataset: LanceDataset) -> Iterator[tuple[tuple[str, str], int, ByteRange]]:
    for fragment in dataset.snapshot.manifest.fragments:
        path = fragment.files[0].store_path
        for page in inspect_pages(dataset.snapshot.store.open(path)).pages:
            for part in page.parts:
                yield (path, page.column), page.number, part.extent


def test_page_bounds_contain_the_values_of_their_unit(dataset: LanceDataset) -> None:
    from pennon.encoding.read_protocol import run
    from pennon.encoding.rows import Rows

    known = 0
    for fragment in dataset.snapshot.manifest.fragments:
        opened = dataset.snapshot.open_file(fragment.files[0])
        file = opened.data
        fields = [each for each in file.schema.walk() if each.logical_type != "struct"]
        for field, bounds in zip(
            fields, run(file.read_bounds(fields, file.column_of), opened.source.read), strict=True
        ):
            assert bounds is not None
            for unit, (start, end) in enumerate(
                zip(bounds.borders[:-1].tolist(), bounds.borders[1:].tolist(), strict=True)
            ):
                ((chunk,),) = file.read_rows([field], file.column_of, Rows.between(start, end))
                values = [v for v in chunk.to_pylist() if v is not None]
                known += _holds(bounds, unit, values, chunk.null_count)
    assert known > 200


def _holds(bounds: Any, unit: int, values: list[Any], nulls: int) -> bool:
    """Check one page; tell whether both bounds were known."""
    low = None if bounds.low is None else bounds.low[unit].as_py()
    high = None if bounds.high is None else bounds.high[unit].as_py()
    count = bounds.null_counts[unit].as_py()
    assert count in {None, nulls}
    assert low is None or not any(v < low for v in values)
    assert high is None or not any(v > high for v in values)
    return low is not None and high is not None


def _appended(uri: Path, zones: list[int | None]) -> LanceDataset:
    """Return a table of a fragment for each number of rows per zone, None for no zone map."""
    for number, rows in enumerate(zones):
        part = pa.table({"n": range(number * 1000, number * 1000 + 1000)})
        pennon.write_dataset(
            part,
            uri,
            mode="append" if number else "create",
            data_storage_version="2.0",
            rows_per_zone=rows,
        )
    store = CountingStore(open_store(uri))
    return LanceDataset.of_snapshot(str(uri), Snapshot(store, read_manifest(store)))


@pytest.mark.parametrize(
    ("zones", "opened"),
    [([None] * 5, 2), ([None, None, 100], 3), ([100, None, None], 3), ([None], 1)],
)
def test_files_without_zone_maps_are_not_opened_for_pruning(
    zones: list[int | None], opened: int, tmp_path: Path
) -> None:
    """Of version 2.0, the first and the last one tell whether the others are asked."""
    table = _appended(tmp_path, zones)
    condition = "n IN (5, 2500)"
    found = table.to_table(filter=condition)["n"].to_pylist()
    assert found == [n for n in (5, 2500) if n < 1000 * len(zones)]
    store = CountingStore(open_store(tmp_path))
    snapshot = Snapshot(store, table.snapshot.manifest)
    pruner = Pruner(parse_filter(condition, table.schema))
    parts = prune_pages(snapshot, plan_tasks(snapshot), pruner, [("n",)])
    assert store.counts.verbs["open"] == opened
    rows = sum(part.rows for part in parts)
    zoned = [number for number, each in enumerate(zones) if each]
    assert rows == sum(1000 - 900 * (number in zoned) for number in range(len(zones)))


@pytest.mark.parametrize("version", ["0.1", "2.1"])
def test_only_version_2_0_has_zone_maps(version: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"data_storage_version": version, "rows_per_zone": 10}
    with pytest.raises(ArgumentError, match=r"rows_per_zone is for files of version 2\.0"):
        pennon.write_dataset(pa.table({"n": [1]}), tmp_path / "t", **options)
    assert not (tmp_path / "t").exists()


def _far_away(uri: Path) -> LanceDataset:
    store = CountingStore(LatencyStore(open_store(uri), seconds=0))
    return LanceDataset.of_snapshot(str(uri), Snapshot(store, read_manifest(store)))


def test_remote_zone_maps_prune_pages_of_open_files(tmp_path: Path) -> None:
    """No file is opened for the plan; what is ruled out is not read all the same."""
    rows = 300_000
    table = pa.table({"n": range(rows), "x": np.random.default_rng(1).random(rows)})
    batches = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(10_000))
    limits = {"data_cache_bytes": 1, "max_rows_per_file": rows // 3}
    options: dict[str, Any] = {**limits, "data_storage_version": "2.0", "rows_per_zone": 5000}
    pennon.write_dataset(batches, tmp_path, **options)
    for condition, found in (
        ("n = 123456", 1),
        ("n < 0", 0),
        ("n IN (5, 299000)", 2),
        ("n IN (5, 99000) AND x < 2", 2),
    ):
        far = _far_away(tmp_path)
        store: Any = far.snapshot.store
        assert far.scanner(filter=condition).count_rows() == found
        assert store.counts.asked_bytes < 0.5 * rows * 16
        kept = far.to_table(filter=condition)
        assert kept["n"].to_pylist() == far.to_table().filter(_numbers(condition))["n"].to_pylist()
    far = _far_away(tmp_path)
    store = far.snapshot.store
    far.to_table(filter="n = 123456")
    assert store.counts.asked_bytes < 0.1 * rows * 16 + 3 * 2**16


def _numbers(condition: str) -> Any:
    wanted = [int(word) for word in re.findall(r"\b\d{2,}\b|\b5\b", condition)]
    return pc.field("n").isin(wanted)


def test_filters_far_away(dataset: LanceDataset) -> None:
    counted: Any = dataset.snapshot.store
    store = LatencyStore(counted.inner, seconds=0)
    far = LanceDataset.of_snapshot("far", Snapshot(store, dataset.snapshot.manifest))
    for seed in range(FILTERS):
        condition = random_filter(random.Random(seed))
        near = dataset.to_table(filter=condition, with_row_id=True)["_rowid"]
        assert far.to_table(filter=condition, with_row_id=True)["_rowid"].equals(near), condition
        assert far.count_rows(condition) == len(near)
