"""Pruning of a table by the keys of a merge's source, without Spark."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.scan.snapshot import Snapshot
from pennon.spark.changes.merge_keys import (
    KeyPair,
    SourceKeys,
    key_pairs,
    knows_keys,
    matching_tasks,
)
from pennon.spark.source.scan_task import open_snapshot

ROWS = 4_000
DAY = date(2026, 1, 1)


def table(folder: Path, *kinds: Any, **options: Any) -> Snapshot:
    """Four fragments of rows (n, date, text), in the order of n."""
    rows = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int32()),
            "day": [DAY + timedelta(n) for n in range(ROWS)],
            "name": [f"n{n:06d}" for n in range(ROWS)],
        }
    )
    uri = str(folder / "table.lance")
    made = pennon.write_dataset(rows, uri, max_rows_per_file=ROWS // 4, **options)
    for column in rows.column_names:
        for kind in kinds:
            made.create_scalar_index(column, kind, name=f"{column}_{kind}")
    return open_snapshot(uri, {})


def found(snapshot: Snapshot, column: str, *values: Any, is_range: bool = False) -> list[Any]:
    """Fragment, first and last row of what is read for some keys."""
    tasks = matching_tasks(snapshot, column, SourceKeys(values, is_range=is_range))
    return [(task.fragment.id, task.start, task.end) for task in tasks]


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
def test_merge_keys_prune_fragments_by_index(tmp_path: Path, kind: str) -> None:
    snapshot = table(tmp_path, kind)
    assert all(knows_keys(snapshot, column) for column in ("id", "day", "name"))
    assert found(snapshot, "id", 2100, 2999, ROWS + 5, 1 << 40) == [(2, 0, 1000)]
    assert found(snapshot, "day", DAY + timedelta(10)) == [(0, 0, 1000)]
    assert found(snapshot, "name", "n001500", "n003500") == [(1, 0, 1000), (3, 0, 1000)]
    assert found(snapshot, "id") == found(snapshot, "id", 1 << 31, -(1 << 31) - 1) == []


def test_merge_keys_prune_pages_by_statistics(tmp_path: Path) -> None:
    snapshot = table(tmp_path, data_storage_version="2.0", rows_per_zone=500)
    assert knows_keys(snapshot, "id")
    assert found(snapshot, "id", 2100, 2200) == [(2, 0, 500)]
    assert found(snapshot, "id", 2600, 3100, is_range=True) == [(2, 500, 1000), (3, 0, 500)]


@pytest.mark.parametrize(
    ("kind", "first"), [("ZONEMAP", 2), ("BTREE", 0), ("BITMAP", 0), ("BLOOMFILTER", 0)]
)
def test_merge_key_ranges_are_pruned_by_zone_maps_only(
    tmp_path: Path, kind: str, first: int
) -> None:
    """An answer as long as the table has rows would stay in the driver."""
    left = found(table(tmp_path, kind), "id", 2100, 1 << 40, is_range=True)
    assert left == [(number, 0, 1000) for number in range(first, 4)]


def test_merge_key_range_outside_all_values_prunes_all_fragments(tmp_path: Path) -> None:
    assert found(table(tmp_path, "ZONEMAP"), "id", 1 << 40, 1 << 41, is_range=True) == []


def test_merge_keys_without_statistics_and_index_prune_no_rows(tmp_path: Path) -> None:
    assert not knows_keys(table(tmp_path), "id")


@pytest.mark.parametrize(
    ("condition", "alias", "pairs"),
    [
        ("t.id = s.k", "t", [("id", "`s`.`k`")]),
        ("s.k = T.id AND s.w > 0 AND t.day = k", "t", [("id", "`s`.`k`"), ("day", "`k`")]),
        ("((id = k) AND (name = s.w))", None, [("id", "`k`"), ("name", "`s`.`w`")]),
        ("id = `k`", "t", [("id", "`k`")]),
        ("t.id = s.k OR t.id = s.w", "t", []),
        ("NOT t.id = s.k", "t", []),
        ("t.id <=> s.k", "t", []),
        ("t.id = s.k + 1", "t", []),
        ("t.id = t.day", "t", []),
        ("id = s.k AND", "t", []),
        ("both = s.k", "t", []),
    ],
)
def test_merge_key_pairs_of_equality_conditions(
    condition: str, alias: str | None, pairs: list[tuple[str, str]]
) -> None:
    """Not where either of two may be, or both sides have a column of that name."""
    source: Any = SimpleNamespace(columns=["k", "W", "both"])
    names = ["id", "day", "name", "both"]
    assert list(key_pairs(condition, names, source, alias)) == [KeyPair(*pair) for pair in pairs]
