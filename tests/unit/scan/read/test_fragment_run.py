"""Neighbouring small fragments that a scan reads as one."""

from __future__ import annotations

import gc
import random
import sys
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import ref

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
from pennon.core.kernels.mapping import mapped_bytes
from pennon.dataset import LanceDataset
from pennon.encoding.v2_1 import strategy
from pennon.errors import FormatError, UnsupportedError
from pennon.io import map_budget, open_store
from pennon.scan.read import fragment_run
from pennon.scan.read.fragment_run import FragmentRun, HeldRuns
from pennon.scan.read.join_tasks import FIRST_FRAGMENTS, STREAMED_BYTES, join_tasks
from pennon.scan.read.tasks import RunTask, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest
from pennon.testing.counting import CountingStore
from tests.seeds import each_seed

ROWS = 20


def _write(uri: Path, fragments: int, rows: int = ROWS, **columns: Any) -> LanceDataset:
    numbers = np.arange(fragments * rows)
    table = pa.table({"n": numbers, "t": [f"text {i % 7}" for i in numbers], **columns})
    return pennon.write_dataset(table, uri, max_rows_per_file=rows)


def _snapshot(uri: Path) -> Snapshot:
    store = open_store(uri)
    return Snapshot(store, read_manifest(store))


def test_small_fragments_are_joined_in_runs_that_grow(tmp_path: Path) -> None:
    _write(tmp_path / "t", 60)
    snapshot = _snapshot(tmp_path / "t")
    tasks = join_tasks(snapshot, tuple(plan_tasks(snapshot)), 1.0)
    assert all(isinstance(task, RunTask) for task in tasks)
    assert [task.rows for task in tasks] == [
        FIRST_FRAGMENTS * ROWS,
        4 * FIRST_FRAGMENTS * ROWS,
        20 * ROWS,
    ]


def test_stream_of_rows_without_a_width_joins_smaller_fragments_only(tmp_path: Path) -> None:
    _write(tmp_path / "t", 3, 40_000, x=np.random.default_rng(1).random(120_000))
    snapshot = _snapshot(tmp_path / "t")
    (size_bytes, *_) = [each.files[0].size_bytes for each in snapshot.manifest.fragments]
    assert size_bytes is not None
    share = 1.5 * STREAMED_BYTES / size_bytes
    tasks = tuple(plan_tasks(snapshot))
    assert len(join_tasks(snapshot, tasks, share)) == 1
    assert len(join_tasks(snapshot, tasks, share, is_held=True)) == 3
    assert len(join_tasks(snapshot, tasks, share / 2, is_held=True)) == 1


def test_long_fragments_of_a_run_are_read_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strings of many neighbours cost less file by file, numbers do not."""
    monkeypatch.setattr(strategy, "MOST_POINT_STRINGS", 50)
    sizes = [40, 200, 30, 20, 300, 500, 10]
    numbers = np.arange(sum(sizes))
    rows = pa.table({"n": numbers, "t": [f"a text of some words {i}" for i in numbers]})
    start = 0
    for size in sizes:
        pennon.write_dataset(rows.slice(start, size), tmp_path / "t", mode="append")
        start += size
    table = pennon.dataset(tmp_path / "t")
    read = table.to_table()
    assert read.equals(rows)
    assert [len(chunk) for chunk in read["n"].chunks] == [sum(sizes)]
    assert [len(chunk) for chunk in read["t"].chunks] == [40, 200, 50, 300, 500, 10]
    assert table.to_table(filter="n % 2 = 0").equals(rows.take(numbers[::2]))


def test_file_that_is_open_is_not_mapped_again(tmp_path: Path) -> None:
    table = _write(tmp_path / "t", 12)
    table.take([3, 5 * ROWS, 11 * ROWS])
    before = mapped_bytes()
    sizes = [each.data_files()[0].file_size_bytes or 0 for each in table.get_fragments()]
    table.to_table()
    assert mapped_bytes() - before == sum(sizes) - sizes[0] - sizes[5] - sizes[11]


def test_scan_of_a_table_too_large_for_its_maps_equals_that_of_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _write(tmp_path / "t", 40)
    rows = table.to_table()
    monkeypatch.setattr(map_budget, "BUDGET_BYTES", 0)
    monkeypatch.setattr(map_budget._OfProcess, "resident", map_budget.Resident(0))
    again = pennon.dataset(tmp_path / "t")
    for _ in range(3):
        assert again.to_table().equals(rows)
        assert again.to_table(filter="n % 7 = 3").equals(rows.filter(pc.field("t") == "text 3"))


def test_large_fragment_between_small_ones_keeps_the_order(tmp_path: Path) -> None:
    for rows in (3, 4, 300_000, 5, 6):
        numbers = np.random.default_rng(rows).integers(0, 1 << 60, rows)
        pennon.write_dataset(pa.table({"n": numbers}), tmp_path / "t", mode="append")
    table = pennon.dataset(tmp_path / "t")
    each = pa.concat_tables([fragment.to_table() for fragment in table.get_fragments()])
    assert table.to_table().equals(each)
    assert table.to_table(filter="n > 5").equals(each)
    assert pa.Table.from_batches(table.to_batches()).equals(each)


def test_tasks_with_rows_between_them_stay_apart(tmp_path: Path) -> None:
    _write(tmp_path / "t", 4)
    snapshot = _snapshot(tmp_path / "t")
    tasks = tuple(plan_tasks(snapshot, offset=5, limit=2 * ROWS))
    (joined,) = join_tasks(snapshot, tasks, 1.0)
    assert (joined.start, joined.end) == (5, 5 + 2 * ROWS)
    first, last = tasks[0], plan_tasks(snapshot)[3]
    part = type(first)(first.fragment, 0, 7)
    assert len(join_tasks(snapshot, (part, last), 1.0)) == 2


def test_cut_of_live_rows_is_by_fragment(tmp_path: Path) -> None:
    table = _write(tmp_path / "t", 3, 10)
    table.delete("n >= 5 AND n < 12")
    snapshot = _snapshot(tmp_path / "t")
    run = FragmentRun(snapshot, list(snapshot.manifest.fragments))
    assert run.cut(0, 23) == [5, 8, 10]
    assert run.cut(4, 6) == [1, 1]
    assert [run.near_end(0, end) for end in (4, 5, 9, 10, 11, 13, 14)] == [4, 5, 5, 5, 11, 13, 13]
    assert [run.near_end(6, end) for end in (12, 13, 19, 20, 21)] == [12, 13, 13, 13, 21]
    assert run.batch_end(0, 10, 2) == 9  # rows 5 to 12 are those of the second fragment
    assert run.batch_end(0, 13, 3) == 13
    assert run.batch_end(0, 6, 6) == 5
    assert run.batch_end(7, 13 + 5, 3) == 13 + 3
    sizes = [batch.num_rows for batch in pennon.dataset(tmp_path / "t").to_batches(batch_size=6)]
    assert sizes == [5, 6, 2, 6, 4]


def test_metas_of_joined_fragments_are_those_of_each(tmp_path: Path) -> None:
    rows = pa.table({"n": np.arange(200)})
    pennon.write_dataset(rows, tmp_path / "t", max_rows_per_file=17, enable_stable_row_ids=True)
    table = pennon.dataset(tmp_path / "t")
    table.delete("n % 5 = 2")
    table.update({"n": "n + 1000"}, where="n < 20")
    names = ["n", "_rowid", "_rowaddr", "_rowoffset", "_row_last_updated_at_version"]
    table = pennon.dataset(tmp_path / "t")
    read = table.to_table(columns=names)
    each = [f.to_table(columns=[*names[:3], names[4]]) for f in table.get_fragments()]
    assert read.drop_columns(["_rowoffset"]).equals(pa.concat_tables(each))
    assert read["_rowoffset"].to_pylist() == list(range(read.num_rows))


def test_limit_of_many_fragments_opens_those_of_the_first_run(tmp_path: Path) -> None:
    _write(tmp_path / "t", 100)
    store = CountingStore(open_store(tmp_path / "t"))
    table = LanceDataset.of_snapshot("t", Snapshot(store, read_manifest(store)))
    assert table.to_table(filter="n >= 3", limit=5)["n"].to_pylist() == [3, 4, 5, 6, 7]
    read = [path for path, counts in store.by_path.items() if counts.rounds and "data/" in path]
    assert len(read) <= FIRST_FRAGMENTS


@pytest.mark.parametrize("options", [{}, {"columns": ["t"]}, {"filter": "n >= 0"}], ids=str)
def test_damage_in_one_file_of_many_names_that_file(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    table = _write(tmp_path / "t", 30)
    path = table.get_fragments()[13].data_files()[0].path
    damaged = tmp_path / "t" / "data" / path
    content = damaged.read_bytes()
    damaged.write_bytes(bytes(512) + content[512:])  # pages begin at the front
    table = pennon.dataset(tmp_path / "t")
    with pytest.raises(FormatError, match=path):
        table.to_table(**options)
    others = [each for each in table.get_fragments() if each.fragment_id != 13]
    read = table.scanner(fragments=others, **options).to_table()
    assert read.num_rows == 29 * ROWS
    assert read["t"].to_pylist() == [
        f"text {i % 7}" for i in range(30 * ROWS) if not 13 * ROWS <= i < 14 * ROWS
    ]


@each_seed(40)
def test_random_damage_of_one_file_of_many_never_mixes_up_rows(tmp_path: Path, seed: int) -> None:
    """The end of one file is damaged, where its footer and metadata lie: its name, or the others' rows."""
    number = seed % 12
    table = _write(tmp_path / str(seed), 12, f=np.random.default_rng(2).random(12 * ROWS))
    rows = table.to_table()
    path = table.get_fragments()[number].data_files()[0].path
    place = tmp_path / str(seed) / "data" / path
    content = place.read_bytes()
    rng = random.Random(seed)
    for _ in range(12):
        damaged = bytearray(content)
        for _ in range(rng.randint(1, 3)):
            damaged[-rng.randint(1, min(700, len(content)))] = rng.choice([0, 1, 2, 128, 255])
        place.write_bytes(damaged)
        try:
            found = pennon.dataset(tmp_path / str(seed)).to_table()
            assert found.num_rows == rows.num_rows
            for start, end in ((0, number * ROWS), (number * ROWS + ROWS, 12 * ROWS)):
                assert found.slice(start, end - start) == rows.slice(start, end - start)
        except (FormatError, UnsupportedError) as error:
            assert path in str(error)  # noqa: PT017 - rows are an answer, too


def test_files_that_other_runs_need_are_let_go_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _write(tmp_path / "t", 60)
    monkeypatch.setattr(fragment_run, "MOST_HELD", 10)
    monkeypatch.setattr(fragment_run, "HELD", HeldRuns())
    for _ in range(3):
        assert table.to_table()["n"].to_pylist() == list(range(60 * ROWS))
        assert table.count_rows(filter="n % 2 = 0") == 30 * ROWS


def _runs() -> dict[int, ref[FragmentRun]]:
    return {id(each): ref(each) for each in gc.get_objects() if isinstance(each, FragmentRun)}


def test_handle_that_is_dropped_gives_its_files_back(tmp_path: Path) -> None:
    """Nothing waits for the collector of circles."""
    before = _runs()
    table = _write(tmp_path / "t", 20)
    table.to_table(filter="n > 3")
    made = [run for key, run in _runs().items() if key not in before]
    assert made
    gc.disable()
    try:
        del table
        assert not [run for run in made if run() is not None]
    finally:
        gc.enable()


def _calls_of_scan(uri: Path, fragments: int, *, is_known: bool = True) -> int:
    table = _write(uri, fragments, v=np.random.default_rng(1).random(fragments * ROWS))
    columns = ["n", "v"]
    for _ in range(2):
        table.to_table(columns=columns, filter="n >= 0")
    if not is_known:
        table = pennon.dataset(uri)
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    table.to_table(columns=columns, filter="n >= 0")
    sys.setprofile(None)
    return calls


def test_one_more_fragment_of_a_known_table_costs_few_calls(tmp_path: Path) -> None:
    """Two columns of one more fragment took 372 calls of Python functions when each was read by itself."""
    few, many = _calls_of_scan(tmp_path / "few", 100), _calls_of_scan(tmp_path / "many", 300)
    assert (many - few) / 200 <= 20


def test_one_more_fragment_of_a_new_handle_costs_few_calls(tmp_path: Path) -> None:
    """To open it and to find two columns took 217 calls when each file was opened by itself."""
    few, many = (
        _calls_of_scan(tmp_path / str(count), count, is_known=False) for count in (100, 300)
    )
    assert (many - few) / 200 <= 100
