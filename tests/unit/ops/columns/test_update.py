"""Columns of a fragment that are written anew, and committed by the caller."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pennon

LAST, FIRST = "_row_last_updated_at_version", "_row_created_at_version"


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_update_without_offsets_moves_the_version_of_all_rows(tmp_path: Path, version: str) -> None:
    """Nothing says which rows changed, so all of the fragment may have; a delta shows them."""
    uri, rows = str(tmp_path / "t"), pa.table({"k": [1, 2, 3, 4], "v": [1, 2, 3, 4]})
    table = pennon.write_dataset(
        rows, uri, max_rows_per_file=2, enable_stable_row_ids=True, data_storage_version=version
    )
    table.delete("k = 2")
    data = pa.table({"k": [1], "v": [9]})
    for offsets in (False, True):
        made = table.get_fragments()[offsets].update_columns(
            pa.table({"k": [3], "v": [9]}) if offsets else data, "k", with_offsets=True
        )
        update = pennon.LanceOperation.Update(
            updated_fragments=[made[0]],
            fields_modified=made[1],
            updated_fragment_offsets={1: bytes(made[-1])} if offsets else None,
        )
        table = pennon.LanceDataset.commit(uri, update, read_version=table.version)
    found = table.to_table(columns=["k", "v", LAST, FIRST])
    assert found.to_pydict() == {
        "k": [1, 3, 4],
        "v": [9, 9, 4],
        LAST: [3, 4, 1],
        FIRST: [1, 1, 1],
    }
    changed = table.delta(compared_against=2).get_updated_rows().read_all()
    assert sorted(changed["k"].to_pylist()) == [1, 3]
