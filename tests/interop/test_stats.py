"""Table sizes and the drop of a table, beside pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon

DATA = pa.table(
    {
        "a": list(range(2000)),
        "s": ["x"] * 2000,
        "st": [{"x": 1, "y": "z"}] * 2000,
        "l": [[1, 2]] * 2000,
    }
)


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_dataset_stats_equal_pylance(tmp_path: Path, version: Any) -> None:
    uri = str(tmp_path / "t")
    made = lance.write_dataset(DATA, uri, data_storage_version=version, max_rows_per_file=1500)
    made.delete("a < 3")
    made.add_columns({"b": "a + 1"})
    made.drop_columns(["s"])
    theirs, ours = lance.dataset(uri).stats, pennon.dataset(uri).stats
    for rows in (10, 501, 1500, 1501):
        assert ours.dataset_stats(rows) == theirs.dataset_stats(rows)
    assert ours.dataset_stats() == theirs.dataset_stats()
    found, expected = (
        [(field.id, field.bytes_on_disk) for field in stats.data_stats().fields]
        for stats in (ours, theirs)
    )
    assert found == expected


@pytest.mark.parametrize("lib", [lance, pennon])
def test_drop_of_table_and_foreign_folder_as_in_pylance(tmp_path: Path, lib: Any) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(DATA, uri).create_branch("trial")
    lib.LanceDataset.drop(uri)
    assert not Path(uri).exists()
    with pytest.raises(OSError, match="t"):
        lib.LanceDataset.drop(uri)
    lib.LanceDataset.drop(uri, ignore_not_found=True)
    Path(uri).mkdir()
    Path(uri, "mine").write_text("x")
    with pytest.raises(ValueError, match="t"):
        lib.LanceDataset.drop(uri)
    assert Path(uri, "mine").exists()
