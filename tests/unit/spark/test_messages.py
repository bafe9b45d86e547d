"""Fragments that tasks wrote travel as they are, with what Pennon does not know of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import pennon
from pennon.spark.messages import parse_fragments, serialize_fragments


def test_fragments_come_back_as_they_were(tmp_path: Path) -> None:
    rows = pa.table({"id": range(100), "s": [{"x": n} for n in range(100)]})
    made = pennon.write_dataset(
        rows, tmp_path / "t", max_rows_per_file=30, enable_stable_row_ids=True
    )
    made.delete("id % 7 = 0")
    fragments = list(pennon.dataset(tmp_path / "t").snapshot.manifest.fragments)
    assert len(fragments) == 4
    assert all(each.deletion_file and each.row_ids for each in fragments)
    assert parse_fragments(serialize_fragments(fragments)) == fragments
    assert parse_fragments(serialize_fragments([])) == []
