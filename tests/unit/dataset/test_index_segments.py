"""Segments that join an index, or replace some of its segments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon


def four_fragments(tmp_path: Path) -> Any:
    """Return a table of four fragments."""
    rows = pa.table({"id": range(40), "word": [f"w{number % 3}" for number in range(40)]})
    return pennon.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=10)


def add(table: Any, kind: str, fragments: list[int]) -> None:
    """Index some fragments."""
    segment = table.create_index_uncommitted("id", kind, name="by_id", fragment_ids=fragments)
    table.commit_existing_index_segments("by_id", "id", [segment])


def covered(table: Any) -> list[list[int]]:
    """Return the fragments of each segment."""
    (index,) = table.describe_indices()
    return sorted(sorted(each.fragment_ids) for each in index.segments)


def test_commit_of_segments_keeps_those_of_other_fragments(tmp_path: Path) -> None:
    table = four_fragments(tmp_path)
    add(table, "BTREE", [0, 1])
    add(table, "BTREE", [2, 3])
    assert covered(table) == [[0, 1], [2, 3]]
    assert table.to_table(filter="id = 5 OR id = 35")["id"].to_pylist() == [5, 35]


def test_commit_of_segments_replaces_those_that_share_a_fragment(tmp_path: Path) -> None:
    table = four_fragments(tmp_path)
    add(table, "BTREE", [0, 1])
    add(table, "BTREE", [2])
    add(table, "BITMAP", [0, 1, 2, 3])
    assert covered(table) == [[0, 1, 2, 3]]


def test_commit_of_segments_of_another_kind_beside_staying_ones_is_refused(tmp_path: Path) -> None:
    table = four_fragments(tmp_path)
    add(table, "BTREE", [0, 1])
    with pytest.raises(
        pennon.errors.ArgumentError, match="cannot change index 'by_id' from type BTree"
    ):
        add(table, "BITMAP", [2, 3])


def test_details_of_a_mem_wal_are_none_without_one(tmp_path: Path) -> None:
    assert four_fragments(tmp_path).mem_wal_index_details() is None
