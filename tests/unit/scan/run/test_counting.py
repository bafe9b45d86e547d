"""Counts that indices know beside those of rows that are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pennon

CONDITIONS = [
    "few = 3",
    "few IN (1, 4, 99)",
    "NOT (few = 3)",
    "few IS NULL",
    "few = 1 OR few IS NULL",
    "few = 77",
    "few = 2 AND array_has(labels, 'b')",
    "few = 2 AND number < 100",
    "few = 2 OR number < 100",
    "array_has(labels, 'a')",
    "NOT array_has(labels, 'a')",
    "array_has_all(labels, ['a', 'b'])",
    "array_has_any(labels, ['c', 'nobody has it'])",
]


def rows(seed: int, count: int = 300) -> pa.Table:
    random = np.random.default_rng(seed)
    few = random.integers(0, 6, count)
    labels = [
        None if each == 5 else ["a", "b", "c", None][: int(each)]
        for each in random.integers(0, 6, count)
    ]
    return pa.table(
        {
            "number": np.arange(count) + 1000 * seed,
            "few": pa.array(few, pa.int64(), mask=few == 5),
            "labels": pa.array(labels, pa.list_(pa.string())),
        }
    )


def indexed(uri: Path, *, stable: bool) -> pennon.LanceDataset:
    table = pennon.write_dataset(
        pa.concat_tables([rows(0), rows(1)]),
        uri,
        max_rows_per_file=200,
        enable_stable_row_ids=stable,
    )
    table.create_scalar_index("few", "BITMAP")
    table.create_scalar_index("labels", "LABEL_LIST")
    return table


def check(table: pennon.LanceDataset) -> None:
    for condition in CONDITIONS:
        plain = table.to_table(filter=condition, use_scalar_index=False).num_rows
        assert table.count_rows(filter=condition) == plain, condition
        assert table.to_table(filter=condition).num_rows == plain, condition
        seen: list[object] = []
        counted = table.scanner(filter=condition, columns=[], scan_stats_callback=seen.append)
        assert (counted.count_rows(), len(seen)) == (plain, 1), condition
        parts = [each.count_rows(filter=condition) for each in table.get_fragments()]
        assert sum(parts) == plain, condition


@pytest.mark.parametrize("stable", [False, True])
def test_count_rows_by_index_after_table_changes(tmp_path: Path, *, stable: bool) -> None:
    table = indexed(tmp_path, stable=stable)
    check(table)
    table.delete("number % 7 = 3")
    check(table)
    table.delete("number < 200")  # a whole fragment
    check(table)
    table = pennon.write_dataset(rows(2), tmp_path, mode="append")
    check(table)  # which no index covers
    table.optimize.optimize_indices(num_indices_to_merge=0)
    check(table)  # several segments
    table.update({"few": "2"}, where="number >= 1200 AND number < 1250")
    check(table)
    table.optimize.compact_files(target_rows_per_fragment=1000)
    check(table)


@pytest.mark.parametrize(
    ("limit", "offset"), [(5, None), (None, 20), (10, 20), (10_000, 3), (0, 0)]
)
def test_count_rows_with_limit_and_offset(
    tmp_path: Path, limit: int | None, offset: int | None
) -> None:
    table = indexed(tmp_path, stable=False)
    for condition in ("few = 3", "few = 77", "few = 2 AND number < 100", "number < 0"):
        scan = table.scanner(filter=condition, limit=limit, offset=offset, use_scalar_index=False)
        counted = table.scanner(filter=condition, limit=limit, offset=offset)
        assert counted.count_rows() == scan.to_table().num_rows


def test_fragments_of_another_version_are_tested(tmp_path: Path) -> None:
    older = indexed(tmp_path, stable=False)
    first = older.get_fragments()[0]
    wanted = first.count_rows(filter="few = 3")
    newer = pennon.dataset(tmp_path)
    newer.delete("number < 200")
    assert len(newer.get_fragments()) < len(older.get_fragments())
    assert newer.to_table(filter="few = 3", fragments=[first]).num_rows == wanted > 0


def test_count_rows_by_index_distinguishes_signed_zeros_as_scan(tmp_path: Path) -> None:
    values = pa.array([0.0, -0.0, 1.5, None, float("nan")] * 3)
    table = pennon.write_dataset(pa.table({"value": values}), tmp_path)
    table.create_scalar_index("value", "BITMAP")
    asked = ["value = 0.0", "value = -0.0", "value IN (0.0, 9.0)", "value IN (-0.0, 9.0)"]
    asked += ["atan2(0.0, value) > 1", "atan2(-0.0, value) > 1", "atan2(-0.0, value) < -1"]
    for condition in (*asked, *reversed(asked)):
        plain = table.to_table(filter=condition, use_scalar_index=False).num_rows
        assert table.count_rows(filter=condition) == plain, condition
