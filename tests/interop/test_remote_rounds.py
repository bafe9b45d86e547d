"""Requests for tables of pylance in an object store: the parts of a fragment that are read at once."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tests.unit.scan.remote import Meeting, far_away, open_counted, opened

ROWS = 100_000


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a table of one fragment, of which rows were deleted, in three data files."""
    rows = pa.table({"a": range(ROWS), "b": [f"b{n}" for n in range(ROWS)]})
    dataset = lance.write_dataset(rows, tmp_path / "t", data_storage_version=request.param)
    dataset.add_columns({"c": "a * 2"})
    dataset.add_columns({"d": "a * 3"})
    dataset.delete("a % 10 = 3")
    return tmp_path / "t"


def test_data_and_deletion_files_are_requested_concurrently(folder: Path) -> None:
    expected = lance.dataset(folder).to_table()
    opening = Meeting(far_away(folder), 4, ("data/", "_deletions/"), once=True)
    assert opened(opening).to_table() == expected
    assert opening.have_met
    reading = Meeting(far_away(folder), 3, once=True)
    reading.have_met = True  # not yet
    dataset = opened(reading)
    assert dataset.to_table() == expected
    reading.have_met = False
    assert dataset.take([1, 17_000]) == expected.take([1, 17_000])
    assert reading.have_met


def test_the_rounds_of_several_files(folder: Path) -> None:
    expected = lance.dataset(folder).to_table()
    dataset, store = open_counted(folder)
    assert dataset.to_table() == expected
    for path, counts in store.by_path.items():
        assert counts.rounds <= (1 if path.startswith("_deletions") else 3)
    store.reset()
    assert dataset.take([9000, 1, 17_000]) == expected.take([9000, 1, 17_000])
    assert {path.partition("/")[0] for path in store.by_path} == {"data"}
    assert all(counts.rounds <= 2 for counts in store.by_path.values())


def test_the_deletion_file_is_one_request(folder: Path) -> None:
    dataset, store = open_counted(folder)
    assert dataset.take([0, 3]).column("a").to_pylist() == [0, 4]
    asked = [counts.verbs for path, counts in store.by_path.items() if path.startswith("_del")]
    assert asked == [{"read": 1}]
