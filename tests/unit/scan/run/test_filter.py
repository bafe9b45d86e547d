"""Filtered scans: bytes read, early ends, and covers of rows."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pennon
from pennon.dataset.lance_dataset import LanceDataset
from pennon.encoding.rows import Rows
from pennon.file.container.file import DataFile
from pennon.io import open_store
from pennon.scan.metrics import Meter
from pennon.scan.predicate import SqlPredicate
from pennon.scan.read.late_materialization import Choice, Cover, slice_chunks, true_rows
from pennon.scan.read.tasks import Unit
from pennon.scan.run import filter as filtered
from pennon.scan.run.filter_unit import Kept, UnitFilter
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore

ROWS = 60_000
RANDOM = np.random.default_rng(9)
WIDE = [RANDOM.bytes(2_000) for _ in range(ROWS // 10)]
TABLE = pa.table(
    {
        "n": np.arange(ROWS),
        "few": np.arange(ROWS) % 1000,
        "wide": pa.array([WIDE[n % len(WIDE)] for n in range(ROWS)], pa.large_binary()),
        "st": pa.StructArray.from_arrays(
            [np.arange(ROWS), pa.array([WIDE[n % 7][:500] for n in range(ROWS)])], ["x", "w"]
        ),
    }
)


@pytest.fixture(scope="module", params=["2.0", "2.1"])
def table(tmp_path_factory: pytest.TempPathFactory, request: Any) -> LanceDataset:
    folder = tmp_path_factory.mktemp("filtered") / "t"
    pennon.write_dataset(
        TABLE, folder, max_rows_per_file=ROWS // 3, data_storage_version=request.param
    )
    store = CountingStore(open_store(folder))
    opened = LanceDataset.of_snapshot(str(folder), Snapshot(store, read_manifest(store)))
    for fragment in opened.snapshot.manifest.fragments:
        data = opened.snapshot.open_file(fragment.files[0]).data
        assert isinstance(data, DataFile)
        data.columns()
    return opened


def _bytes(table: LanceDataset, read: Any) -> int:
    """Return what is asked for by a read that is not the first, which fills the search cache."""
    store = table.snapshot.store
    assert isinstance(store, CountingStore)
    read()
    store.reset()
    read()
    return store.counts.asked_bytes


def test_few_rows_of_wide_columns_are_read(table: LanceDataset) -> None:
    """60 rows of 2000 bytes, not 60,000."""
    found = table.to_table(filter="few = 7")
    assert found.equals(TABLE.filter(pa.array(np.arange(ROWS) % 1000 == 7)))
    spent = _bytes(table, lambda: table.to_table(columns=["wide"], filter="few = 7"))
    assert spent < ROWS * 8 + 60 * 2_000 * 8
    assert _bytes(table, lambda: table.to_table(columns=["wide"])) > ROWS * 1_900


def test_filter_reads_projected_columns_once(table: LanceDataset) -> None:
    whole = _bytes(table, lambda: table.to_table(columns=["n", "few"]))
    both = _bytes(table, lambda: table.to_table(columns=["n", "few"], filter="n >= 0 and few >= 0"))
    assert both <= whole


def test_filter_reads_only_the_tested_struct_field(table: LanceDataset) -> None:
    spent = _bytes(table, lambda: table.count_rows("st.x >= 0"))
    assert spent <= _bytes(table, lambda: table.to_table(columns=["st.x"]))
    assert table.to_table(columns=["st"], filter="st.x = 5")["st"].to_pylist() == [
        TABLE["st"][5].as_py()
    ]


def test_counting_reads_the_filters_columns_only(table: LanceDataset) -> None:
    whole = _bytes(table, lambda: table.to_table(columns=["few"]))
    assert _bytes(table, lambda: table.count_rows("few < 500")) <= whole
    assert table.count_rows("few < 500") == ROWS // 2
    assert _bytes(table, table.count_rows) == 0
    assert _bytes(table, lambda: table.count_rows("1 = 0")) == 0


def test_filter_without_matches_reads_only_filter_columns(table: LanceDataset) -> None:
    counted = _bytes(table, lambda: table.count_rows("n < 0"))
    assert _bytes(table, lambda: table.to_table(filter="n < 0")) == counted


def test_a_limit_ends_the_reading(table: LanceDataset) -> None:
    store = table.snapshot.store
    assert isinstance(store, CountingStore)
    whole = _bytes(table, lambda: table.count_rows("few >= 0"))
    for read in (
        lambda: table.to_table(columns=["n"], filter="few >= 0", limit=10),
        lambda: list(table.to_batches(columns=["n"], filter="few >= 0", limit=10)),
        lambda: table.scanner(columns=["n"], filter="few >= 0", limit=10).count_rows(),
    ):
        assert _bytes(table, read) < whole / 2
        assert [path for path, counts in store.by_path.items() if counts.rounds] == [
            table.snapshot.manifest.fragments[0].files[0].store_path
        ]
    assert _bytes(table, lambda: table.to_table(filter="few >= 0", limit=0)) == 0
    late = table.to_table(columns=["n"], filter="few = 3", limit=4, offset=50)
    assert late["n"].to_pylist() == [50_003, 51_003, 52_003, 53_003]


@pytest.mark.parametrize("late", [True, False, ["wide"], None])
def test_late_materialization_keeps_the_rows(table: LanceDataset, late: Any) -> None:
    """Whichever are read late, the rows are the same; none are read in between if it is asked for."""
    for text, kept in (("few < 3", 180), ("few < 700", 42_000)):
        found = table.to_table(filter=text, late_materialization=late)
        assert found.num_rows == kept
        assert found.equals(TABLE.filter(pa.array(np.arange(ROWS) % 1000 < kept // 60)))
    early = _bytes(
        table,
        lambda: table.to_table(columns=["wide"], filter="few = 1", late_materialization=late),
    )
    assert (early > ROWS * 1_900) is (late is False)


def test_closing_early_ends_the_work(tmp_path: Path) -> None:
    """After the caller leaves, no unit begins; those that began may end."""
    rows = pa.table({"n": np.arange(3_000_000), "m": np.arange(3_000_000)})
    pennon.write_dataset(rows, tmp_path / "t", max_rows_per_file=100_000)
    store = CountingStore(open_store(tmp_path / "t"))
    opened = LanceDataset.of_snapshot("t", Snapshot(store, read_manifest(store)))
    before = threading.active_count()
    choices: list[dict[str, Any]] = [{"filter": "n % 2 = 0"}, {"columns": {"x": "n + m"}}]
    for keywords in choices:
        store.reset()
        batches = opened.to_batches(batch_size=100, **keywords)
        assert next(batches).num_rows == 100
        batches.close()  # type: ignore[attr-defined]
        read = [path for path, counts in store.by_path.items() if counts.rounds]
        assert len(read) < 29
    assert threading.active_count() <= before + 8


def test_filtered_batches_of_wide_rows_are_bounded(table: LanceDataset) -> None:
    """Half of the rows are 60 MB: no batch waits for all of them."""
    batches = list(table.to_batches(columns=["wide"], filter="few < 500", batch_size=100_000))
    assert sum(batch.num_rows for batch in batches) == ROWS // 2
    assert max(batch.nbytes for batch in batches) < 16 << 20


def test_filter_plan_text(table: LanceDataset) -> None:
    scanner = table.scanner(columns=["wide"], filter="few < 2 AND n >= 20000", limit=5)
    text = scanner.explain_plan(verbose=True)
    assert "Limit: limit=5" in text
    assert "Read: projection=[wide]" in text
    assert (
        "projection=[n, few], fragments=3 of 3, rows=60000 of 60000, full_filter=few < 2 AND n >= 20000"
        in text
    )
    assert "fragment 2: rows 0..20000" in text
    whole = table.scanner(columns=["wide"], filter="few < 2 AND n >= 20000").analyze_plan()
    assert "Scanned: rows=80," in whole
    assert "output_rows=80" in whole
    assert "files=2" in whole.splitlines()[1]
    assert "files=3" in whole.splitlines()[2]
    assert "iops=0" in table.scanner().analyze_plan(count_rows=True)
    pruned = table.scanner(filter="_rowid = 3").explain_plan()
    assert "fragments=1 of 3, rows=1 of 60000" in pruned


@pytest.mark.parametrize(
    ("version", "whole", "few"),
    [
        (
            "legacy",
            "n: just the rows, of all row groups at once (3 of 3 row groups): values that no list holds",
            "point read, in as few requests as gaps allow (2 of 3 row groups): up to 1024 rows, gaps of up to 4 MiB",
        ),
        (
            "2.0",
            "n: pages side by side (1 page): more than 1024 rows",
            "point read, in as few requests as gaps allow (1 page): up to 1024 rows, gaps of up to 1.5 MiB",
        ),
        (
            "2.1",
            "n: all chunks along with their index (1 page): all rows of the page",
            "point read by one kernel call (1 page): up to 262144 single rows",
        ),
    ],
)
def test_verbose_plans_show_how_columns_are_read(
    tmp_path: Path, version: str, whole: str, few: str
) -> None:
    rows = pa.table(
        {
            "n": np.arange(3000),
            "s": [{"text": f"{n}", "list": [n]} for n in range(3000)],
        }
    )
    table = pennon.write_dataset(
        rows, tmp_path / "t", data_storage_version=version, max_rows_per_group=1000
    )
    assert table.scanner().explain_plan(verbose=True).splitlines()[1:3] == [
        "  fragment 0: rows 0..3000",
        f"    {whole}",
    ]
    scanner = table.scanner(["s"], filter="n % 2 = 0", late_materialization=True)
    text = scanner.explain_plan(verbose=True)
    assert f"  fragment 0: rows 0..3000\n      {whole}\n" in text
    single, everything = text.split("if single rows are kept:")[1].split("if all rows are kept:")
    assert f"s.text: {few}" in single
    assert "s.list" in everything


def test_verbose_plan_names_columns_in_no_data_file(tmp_path: Path) -> None:
    table = pennon.write_dataset(pa.table({"n": [1]}), tmp_path / "t")
    table.add_columns(pa.field("later", pa.int32()))
    assert "later: in no data file, all NULL" in table.scanner().explain_plan(verbose=True)


def test_scan_meter_equals_store_counts(table: LanceDataset) -> None:
    store = table.snapshot.store
    assert isinstance(store, CountingStore)
    meter = Meter()
    metered = LanceDataset.of_snapshot("t", table.snapshot.metered(meter))
    store.reset()
    metered.to_table(columns=["n", "wide"], filter="few = 7")
    assert meter.rounds == store.counts.rounds
    assert meter.requests == store.counts.requests
    assert meter.read_bytes == store.counts.read_bytes
    assert meter.files == 3
    assert meter.pages >= 9


def test_scan_stats_callback_is_called(
    table: LanceDataset, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Any] = []
    scanner = table.scanner(columns=["n"], filter="few = 7", scan_stats_callback=told.append)
    assert scanner.to_table().num_rows == scanner.count_rows() == 60
    assert sum(batch.num_rows for batch in scanner.to_batches()) == 60
    assert len(told) == 3
    assert all(stats.bytes_read > 0 < stats.requests for stats in told)
    assert told[0].all_counts["files_read"] == 3

    def fail(_: Any) -> None:
        raise RuntimeError

    assert table.scanner(limit=5, scan_stats_callback=fail).to_table().num_rows == 5
    assert "scan_stats_callback failed" in caplog.text
    with pytest.raises(TypeError, match="function"):
        table.scanner(scan_stats_callback=3)  # type: ignore[arg-type]


# --- covers ---------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(
    rows=st.sets(st.integers(0, 400), min_size=1),
    row_bytes=st.sampled_from([8, 64, 1024]),
    cost_bytes=st.sampled_from([0, 64, 400, 65_536]),
)
def test_cover_contains_all_wanted_rows(rows: set[int], row_bytes: int, cost_bytes: int) -> None:
    """They hold all rows wanted, and picking from them gives these."""
    physical = np.array(sorted(rows), np.int64)
    cover = Cover.of(physical, row_bytes, cost_bytes)
    indices = cover.rows.indices()
    assert (np.diff(cover.rows.starts) > 0).all()
    assert (cover.rows.ends[:-1] <= cover.rows.starts[1:]).all()
    half = len(indices) // 2
    chunks = [pa.array(indices[:half]), pa.array(indices[half:])]
    for parts in (chunks, [pa.array(indices)]):
        picked = [value for chunk in cover.wanted.pick(parts) for value in chunk.to_pylist()]
        assert picked == physical.tolist()
    if not cost_bytes:
        assert cover.rows.count == len(rows)


def _ranges(rows: Rows) -> Sequence[tuple[int, int]]:
    return list(zip(rows.starts.tolist(), rows.ends.tolist(), strict=True))


def test_clusters_are_ranges() -> None:
    """Rows that lie close are one range, unless they are wide; what lies far is another."""
    physical = np.array([10, 12, 15, 100_000, 200_000, 200_010], np.int64)
    assert _ranges(Cover.of(physical, 8, 400).rows) == [
        (10, 16),
        (100_000, 100_001),
        (200_000, 200_011),
    ]
    assert Cover.of(physical, 4_096, 400).rows.count == 6
    assert _ranges(Cover.of(physical[:3], 8, 65_536).rows) == [(10, 16)]


@pytest.mark.parametrize("offset", [0, 3, 8, 17])
def test_true_rows_of_mask_slices(offset: int) -> None:
    values = [None if n % 5 == 0 else n % 3 == 0 for n in range(100)]
    mask = pa.array(values).slice(offset, 70)
    expected = [n for n, value in enumerate(values[offset : offset + 70]) if value]
    assert true_rows(mask).tolist() == expected


def test_slices_of_chunks() -> None:
    chunks = [pa.array([1, 2]), pa.array([], pa.int64()), pa.array([3, 4, 5])]
    assert [c.to_pylist() for c in slice_chunks(chunks, 1, 3)] == [[2], [3, 4]]
    assert [c.to_pylist() for c in slice_chunks(chunks, 2, 0)] == [[]]
    assert slice_chunks([], 0, 5) == []
    dense = Choice(np.array([0, 1, 2, 4], np.int64), 5)
    assert [c.to_pylist() for c in dense.pick(chunks)] == [[1, 2], [3, 5]]


@pytest.mark.parametrize(
    ("fragments", "units"),
    [
        ([275_000, 225_000], [275_000, 225_000]),
        ([500_000], [250_000, 250_000]),
        ([100_000, 400_000], [100_000, 200_000, 200_000]),
    ],
)
def test_units_are_as_many_as_threads_need_and_even(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fragments: list[int], units: list[int]
) -> None:
    for rows in fragments:
        numbers = np.arange(rows) << 40
        pennon.write_dataset(pa.table({"n": numbers}), tmp_path / "t", mode="append")
    tested: list[Unit] = []
    test = UnitFilter.test

    def noted(self: UnitFilter, unit: Unit) -> Kept | None:
        tested.append(unit)
        return test(self, unit)

    monkeypatch.setattr(filtered, "processors", lambda: 2)
    monkeypatch.setattr(UnitFilter, "test", noted)
    found = pennon.dataset(tmp_path / "t").to_table(filter=f"n < {10 << 40}")
    assert found.num_rows == 10 * len(fragments)
    assert [unit.rows for unit in sorted(tested, key=lambda unit: (unit.task, unit.start))] == units


def test_filter_bounds_are_reused_by_the_next_scan(tmp_path: Path) -> None:
    """... of the same columns and the same rows that live, and of no other."""
    values = pa.table({"n": np.arange(3_000), "k": np.arange(3_000) % 7, "s": ["x"] * 3_000})
    table = pennon.write_dataset(values, tmp_path / "t")
    store = CountingStore(open_store(tmp_path / "t"))
    opened = LanceDataset.of_snapshot("t", Snapshot(store, read_manifest(store)))

    def found(source: LanceDataset, columns: list[str]) -> pa.Table:
        return source.to_table(columns=columns, filter="n >= 100 AND n < 110")

    first = found(opened, ["k"])
    store.reset()
    assert found(opened, ["k"]) == first == values.slice(100, 10).select(["k"])
    assert store.counts.rounds == 1  # all is small, and read at once
    assert found(opened, ["s", "n"]) == values.slice(100, 10).select(["s", "n"])
    found(table, ["k"])
    table.delete("k = 3")
    kept = values.slice(100, 10).filter(pc.not_equal(values["k"].slice(100, 10), 3))
    assert found(table, ["k"]) == kept.select(["k"])
    assert found(opened, ["k"]) == first


def test_predicate_pickles_after_use() -> None:
    schema = pa.schema({"n": pa.int64()})
    predicate = SqlPredicate.parse("n > 5 AND n IN (6, 7)", schema)
    assert predicate.columns == [("n",)]
    assert not predicate.is_never_true
    assert pickle.loads(pickle.dumps(predicate)) == predicate
