"""Progress of long work told to a function, tqdm and rich."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.progress import Progress

import pennon
from pennon.ops import bars, progress_bars
from pennon.progress import RichProgress, TqdmProgress, report_to


def small_fragments(place: Path) -> pennon.LanceDataset:
    return pennon.write_dataset(pa.table({"n": range(6)}), place / "t.lance", max_rows_per_file=1)


def test_examples_of_progress() -> None:
    for module in (bars, progress_bars, pennon.progress):
        assert doctest.testmod(module).failed == 0


def test_report_to_hears_of_compaction_index_and_clone(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    ds = small_fragments(tmp_path)
    with report_to(lambda *each: told.append(each)):
        ds.create_scalar_index("n", "BTREE")
        ds.optimize.compact_files(target_rows_per_fragment=3)
        ds.deep_clone(tmp_path / "copy.lance")
    kinds = list(dict.fromkeys(what for what, _, _ in told))
    assert kinds == ["index n_idx", "compacting", "copying files"]
    assert told[-1][1] == told[-1][2]
    before = len(told)
    ds.deep_clone(tmp_path / "copy2.lance")
    assert len(told) == before


def test_progress_argument_of_compaction(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    small_fragments(tmp_path).optimize.compact_files(
        target_rows_per_fragment=3, progress=lambda *each: told.append(each)
    )
    assert told == [(1, 2), (2, 2)]


def test_progress_argument_of_optimized_indices(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    ds = small_fragments(tmp_path)
    ds.create_scalar_index("n", "BTREE")
    ds.insert(pa.table({"n": [7]}))
    ds.optimize.optimize_indices(progress=lambda *each: told.append(each))
    assert told
    assert all(done <= total for done, total in told)


class FakeTqdm:
    """Has the attributes of tqdm that the adaptor uses."""

    made: list[FakeTqdm]

    def __init__(self, **given: Any) -> None:
        self.given, self.n, self.total, self.is_closed = given, 0, given["total"], False
        self.made.append(self)

    def update(self, more: int) -> None:
        self.n += more

    def refresh(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        self.is_closed = True


def test_tqdm_has_a_bar_for_each_kind_of_work() -> None:
    FakeTqdm.made = []
    shown = TqdmProgress(FakeTqdm)
    for told in (("copying", 1, 2), ("copying", 2, 2), ("indexing", 5, 0)):
        shown(*told)
    shown.close()
    shown.close()
    assert [each.given["desc"] for each in FakeTqdm.made] == ["copying", "indexing"]
    assert [(each.n, each.total, each.is_closed) for each in FakeTqdm.made] == [
        (2, 2, True),
        (5, None, True),
    ]


def test_tqdm_and_rich_take_progress_without_a_name() -> None:
    FakeTqdm.made = []
    TqdmProgress(FakeTqdm)(3, 4)
    assert (FakeTqdm.made[0].n, FakeTqdm.made[0].given["desc"]) == (3, None)
    rich = Progress(disable=True)
    RichProgress(rich)(3, 4)
    assert rich.tasks[0].completed == 3
