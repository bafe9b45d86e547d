"""Compaction of a table that grows by small batches."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.io import open_store
from pennon.ops.compact.levels import FAN, compact_level


def test_compaction_by_levels_leaves_few_fragments_and_writes_each_row_a_few_times(
    tmp_path: Path,
) -> None:
    uri, written = str(tmp_path / "t"), 0
    for number in range(2 * FAN * FAN + 3):
        pennon.write_dataset(
            pa.table({"id": [number, number]}), uri, mode="append" if number else "create"
        )
        before = pennon.dataset(uri)
        version = compact_level(open_store(uri), number, 2)
        assert (version is None) == ((number + 1) % FAN != 0)
        if version is not None:
            after = pennon.dataset(uri)
            old = {each.fragment_id for each in before.get_fragments()}
            new = [each for each in after.get_fragments() if each.fragment_id not in old]
            written += sum(each.count_rows() for each in new)
        assert len(pennon.dataset(uri).get_fragments()) <= 2 * FAN + 2
    ds = pennon.dataset(uri)
    assert ds.to_table()["id"].to_pylist() == [n // 2 for n in range(2 * ds.count_rows() // 2)]
    assert [each.count_rows() for each in ds.get_fragments()] == [512, 512, 2, 2, 2]
    assert written <= 2 * ds.count_rows()


@pytest.mark.parametrize(("number", "rows"), [(0, 5), (14, 5), (15, 0), (15, 2**20)])
def test_compaction_by_levels_waits_until_it_is_worth_it(
    tmp_path: Path, number: int, rows: int
) -> None:
    uri = str(tmp_path / "t")
    for mode in ("create", "append"):
        pennon.write_dataset(pa.table({"id": [1]}), uri, mode=mode)
    assert compact_level(open_store(uri), number, rows) is None
