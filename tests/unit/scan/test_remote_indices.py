"""Indices in object stores: so few requests, and so few of them after one another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.dataset.operation import IndexFile
from pennon.table import indices_wire
from pennon.testing import CountingStore
from tests.unit.scan.remote import Meeting, far_away, opened

ROWS = 60_000
PAGE_ROWS = 4096


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2"])
def version(request: pytest.FixtureRequest) -> str:
    """Return the version of the table's files, and of the index's."""
    return str(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, version: str) -> Path:
    """Return a table whose BTREE has 15 pages."""
    found = tmp_path_factory.mktemp("indices") / "t.lance"
    data = pa.table({"i": pa.array(range(ROWS), pa.int64())})
    table = pennon.write_dataset(data, found, data_storage_version=version)
    table.create_scalar_index("i", "BTREE")
    return found


def of_indices(store: CountingStore) -> tuple[int, int]:
    """Return how many rounds of reads the files of indices had, and how often their sizes were asked for."""
    found = [counts for path, counts in store.by_path.items() if path.startswith("_indices/")]
    return sum(each.rounds for each in found), sum(each.verbs["info"] for each in found)


def test_a_point_lookup_is_two_rounds_cold_and_one_warm(folder: Path) -> None:
    """The ends of both files at once, then a page; of an index that is open, just a page.

    Files of 2.1 say where the chunks of a page are in bytes that are read along with the likely ones.
    """
    together = Meeting(far_away(folder), 2, ("_indices/",), once=True)
    store = CountingStore(together)
    table = opened(store)
    assert table.count_rows("i = 7") == 1
    assert together.have_met
    assert of_indices(store) == (3, 0)
    store.reset()
    assert table.count_rows(f"i = {ROWS - 1}") == 1
    assert of_indices(store) == (1, 0)
    store.reset()
    assert table.count_rows(f"i = {ROWS - 2}") == 1
    assert of_indices(store) == (0, 0)


def test_several_pages_are_read_at_once(folder: Path) -> None:
    values = [page * PAGE_ROWS + 5 for page in range(0, 12, 4)]
    waiting = Meeting(far_away(folder), 3, ())
    table = opened(waiting)
    table.count_rows(f"i = {ROWS - 1}")
    waiting.meets = ("_indices/",)
    assert table.count_rows(f"i IN ({', '.join(map(str, values))}, -1)") == 3
    assert waiting.have_met


def test_the_indices_of_a_version_are_parsed_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[object] = []
    parse = indices_wire.parse_index

    def counting(message: object) -> object:
        parsed.append(message)
        return parse(message)  # type: ignore[arg-type]

    monkeypatch.setattr(indices_wire, "parse_index", counting)
    indices_wire.parse_indices.cache_clear()
    table = pennon.dataset(folder)
    for _ in range(3):
        assert table.count_rows("i = 7") == 1
        assert len(table.describe_indices()) == 1
    assert len(pennon.dataset(folder).describe_indices()) == 1
    assert len(parsed) == 1


def test_wrong_index_file_sizes_are_requested_from_the_store(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    table = pennon.write_dataset(pa.table({"i": pa.array(range(100), pa.int64())}), uri)
    segment = table.create_index_uncommitted("i", "BTREE", "x", fragment_ids=[0])
    wrong = [IndexFile(each.path, each.size_bytes - 1) for each in segment.files or ()]
    table.commit_existing_index_segments("x", "i", [replace(segment, files=wrong)])
    table = opened(far_away(tmp_path / "t.lance"))
    assert table.count_rows("i = 7") == 1
    assert "not_asked" not in table.describe_indices()[0].details
