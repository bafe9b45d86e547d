"""Takes from object stores: so few requests, and so few of them after one another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.testing import CountingStore
from tests.unit.scan.remote import LIMITS, Meeting, far_away, open_counted, opened

ROWS = 60_000
NUMBERS = np.arange(ROWS)
TEXTS = pa.array([f"value number {n} of a column that is wide" for n in range(ROWS)])
COLUMNS = {
    "number": pa.array(NUMBERS),
    "number or NULL": pa.array([None if n % 7 == 0 else n for n in range(ROWS)]),
    "text": TEXTS,
    "few texts": pa.array([f"v{n % 9}" for n in range(ROWS)]),
    "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(NUMBERS, 8) / 3), 8),
    "list": pa.array([[n] * (n % 4) for n in range(ROWS)]),
    "flag": pa.array([n % 3 == 0 for n in range(ROWS)]),
    "struct": pa.array([{"a": n, "b": f"b{n}"} for n in range(ROWS)]),
}
TABLE = pa.table(COLUMNS)


@pytest.fixture(scope="module", params=["2.0", "2.1"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("takes") / "t.lance"
    pennon.write_dataset(TABLE, found, data_storage_version=request.param)
    return found


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "struct"])
def test_a_row_of_a_column_costs_two_requests(folder: Path, name: str) -> None:
    dataset, store = open_counted(folder)
    dataset.take([5], columns=["flag"])
    for row in (ROWS // 2 + 1, 7, ROWS - 3):
        store.reset()
        assert dataset.take([row], columns=[name])[name].to_pylist() == [TABLE[name][row].as_py()]
        # The index of a page of lists lies in two places; it is asked for once.
        is_learning = name == "list" and row == ROWS // 2 + 1
        assert store.counts.requests <= (3 if is_learning else 2)
        assert store.counts.rounds <= 2


def test_the_first_row_of_a_table_costs_one_more_for_its_file(folder: Path) -> None:
    dataset, store = open_counted(folder)
    assert dataset.take([ROWS // 2], columns=["number"]).num_rows == 1
    assert store.counts.requests <= 3
    assert store.counts.verbs["list"] == 0


@pytest.mark.parametrize("columns", [1, 5, len(COLUMNS)])
def test_remote_take_rounds_are_constant_over_columns(folder: Path, columns: int) -> None:
    rows = np.random.default_rng(1).permutation(ROWS)[:100]
    names = list(COLUMNS)[-columns:]
    dataset, store = open_counted(folder)
    dataset.take([0], columns=["flag"])
    store.reset()
    assert dataset.take(rows, columns=names).equals(TABLE.select(names).take(pa.array(rows)))
    assert store.counts.rounds <= 2


def test_remote_take_reads_fragments_concurrently(tmp_path: Path) -> None:
    """All are opened together, and then read together."""
    fragments, size = LIMITS.concurrency, 2000
    rows = TABLE.slice(0, fragments * size).select(["vector"])
    pennon.write_dataset(rows, tmp_path / "t", max_rows_per_file=size, data_storage_version="2.0")
    counted = CountingStore(Meeting(far_away(tmp_path / "t"), fragments))
    dataset = opened(counted)
    for first in (0, 10):
        wanted = np.random.default_rng(2).permutation(fragments * 10)
        wanted = wanted // 10 * size + wanted % 10 + first
        assert dataset.take(wanted).equals(rows.take(pa.array(wanted)))
    of_files = [counts for path, counts in counted.by_path.items() if path.startswith("data/")]
    assert [counts.rounds for counts in of_files] == [3] * fragments


def test_a_small_file_is_read_with_its_end(tmp_path: Path) -> None:
    rows = TABLE.slice(0, 200)
    pennon.write_dataset(rows, tmp_path / "t")
    dataset, store = open_counted(tmp_path / "t")
    assert dataset.to_table().equals(rows)
    assert dataset.take([7, 3]).equals(rows.take([7, 3]))
    assert store.counts.requests == 1


def test_first_take_from_small_pages_reads_them_with_their_index(tmp_path: Path) -> None:
    rows = pa.table({"a": range(20_000), "b": [f"text {n % 977} of {n}" for n in range(20_000)]})
    pennon.write_dataset(rows, tmp_path / "t", data_storage_version="2.1")
    dataset, store = open_counted(tmp_path / "t")
    wanted = list(range(0, 20_000, 2000))
    assert dataset.take(wanted) == rows.take(pa.array(wanted))
    (counts,) = store.by_path.values()
    assert counts.rounds <= 2, "the end of the file, and the pages"
    store.reset()
    assert dataset.take([3, 19_999], columns=["b"]) == rows.select(["b"]).take(
        pa.array([3, 19_999])
    )
    (counts,) = store.by_path.values()
    assert counts.rounds == 1
