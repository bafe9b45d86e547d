"""Tables with a MemWAL, which pylance 14 makes: read without its rows, with one warning, and left alone."""

from __future__ import annotations

import uuid
import warnings
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import UnreadRowsWarning

ROWS = pa.table({"k": [1, 2, 3], "v": [1, 2, 3]})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Return a table with three rows, and one more in the MemWAL."""
    place = str(tmp_path / "t")
    table = lance.write_dataset(ROWS, place)
    table.initialize_mem_wal(unsharded=True)
    writer = lance.dataset(place).mem_wal_writer(str(uuid.uuid4()))
    writer.put(pa.table({"k": [4], "v": [4]}))
    writer.close()
    return place


def _contents(uri: str) -> dict[Path, bytes]:
    files = [path for path in Path(uri, "_mem_wal").rglob("*") if path.is_file()]
    assert files
    return {path: path.read_bytes() for path in files}


def test_table_with_a_mem_wal_warns_once(uri: str) -> None:
    """The warning says what is missing; pylance's own scan misses the same rows."""
    with pytest.warns(UnreadRowsWarning, match=r"MemWAL of 1 shard.*1 flushed table.*1 log file"):
        table = pennon.dataset(uri)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnreadRowsWarning)
        assert table.to_table() == pennon.dataset(uri).to_table() == ROWS
        assert lance.dataset(uri).to_table() == ROWS


def test_mem_wal_without_rows_does_not_warn(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(ROWS, uri).initialize_mem_wal(unsharded=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnreadRowsWarning)
        assert pennon.dataset(uri).to_table() == ROWS


@pytest.mark.filterwarnings("ignore::pennon.errors.UnreadRowsWarning")
def test_changes_and_clean_up_keep_the_mem_wal(uri: str) -> None:
    """Its files and its entry among the indices stay, whatever is done to the table."""
    before = _contents(uri)
    table = pennon.dataset(uri)
    table.insert(ROWS)
    table.delete("k = 1")
    table.create_scalar_index("k", "BTREE")
    table.optimize.compact_files()
    table.optimize.optimize_indices()
    table.add_columns({"w": "v + 1"})
    table.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert len(table.versions()) == 1
    assert _contents(uri) == before
    details = lance.dataset(uri).mem_wal_index_details()
    assert details is not None
    assert details["num_shards"] == 1
    assert pennon.dataset(uri).count_rows() == lance.dataset(uri).count_rows() == 4
