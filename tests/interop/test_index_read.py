"""Indices that pylance makes: with them Pennon gives the rows that it gives without, and pylance, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from tests.interop.indexed_tables import Tables, differences, grow


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_index_read_of_random_tables_and_conditions(
    tmp_path: Path, version: str, *, stable: bool
) -> None:
    tables = Tables(int(stable))
    folder = str(tmp_path / "t.lance")
    grow(folder, tables, version, stable=stable, makers=[lance])
    assert not differences(folder, tables, 40)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_index_read_of_many_random_tables_and_conditions(tmp_path: Path) -> None:
    wrong = []
    for seed in range(1000, 1042):
        version, stable = ("2.0", "2.1", "2.2")[seed % 3], seed % 2 == 0
        tables = Tables(seed)
        folder = str(tmp_path / f"{seed}.lance")
        grow(folder, tables, version, stable=stable, makers=[lance])
        wrong += [f"seed {seed}: {each}" for each in differences(folder, tables, 50)]
    assert not wrong


def test_index_read_of_disjoint_not_in_lists_skips_nulls(tmp_path: Path) -> None:
    """Not both can be false, so pylance takes the condition for true; of a NULL it is NULL."""
    lance.write_dataset(pa.table({"i": pa.array([1, 2, 3, None])}), tmp_path / "t.lance")
    condition = "i NOT IN (1, 2) OR i NOT IN (3, 4)"
    ours = pennon.dataset(tmp_path / "t.lance").to_table(filter=condition)
    theirs = lance.dataset(tmp_path / "t.lance").to_table(filter=condition)
    assert ours["i"].to_pylist() == [1, 2, 3]
    assert theirs["i"].to_pylist() == [1, 2, 3, None]


@pytest.mark.parametrize("kind", ["BITMAP", "LABEL_LIST"])
def test_index_read_after_update_ignores_the_old_value(tmp_path: Path, kind: Any) -> None:
    """With stable row ids pylance finds it by that, too, once another segment has the new one."""
    rows = {"id": [1, 2, 3], "s": [["a"], ["a"], ["b"]]}
    is_here, new = "array_has(s, 'a')", "make_array('b')"
    if kind == "BITMAP":
        rows["s"] = ["a", "a", "b"]
        is_here, new = "s = 'a'", "'b'"
    folder = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table(rows), folder, enable_stable_row_ids=True)
    lance.dataset(folder).create_scalar_index("s", kind)
    lance.dataset(folder).update({"s": new}, where="id = 1")
    lance.dataset(folder).optimize.optimize_indices(num_indices_to_merge=0)
    found = [
        [sorted(each.to_table(filter=f)["id"].to_pylist()) for f in (is_here, f"NOT ({is_here})")]
        for each in (pennon.dataset(folder), lance.dataset(folder))
    ]
    assert found == [[[2], [1, 3]], [[1, 2], [3]]]


def test_index_read_of_not_is_true_with_null(tmp_path: Path) -> None:
    """With an index pylance takes NOT (NULL IS TRUE) for NULL."""
    folder = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": [1, 2, 3], "b": pa.array([True, False, None])}), folder)
    lance.dataset(folder).create_scalar_index("b", "BTREE")
    condition = "NOT (b IS TRUE)"
    ours = pennon.dataset(folder).to_table(filter=condition)
    theirs = lance.dataset(folder).to_table(filter=condition)
    assert ours["id"].to_pylist() == [2, 3]
    assert theirs["id"].to_pylist() == [2]
