"""Indices that pylance makes: with them Pennon gives the rows that it gives without, and pylance, too."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import pennon
from tests.interop.indexed_tables import Tables, differences, grow


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_random_tables_and_conditions(tmp_path: Path, version: str, *, stable: bool) -> None:
    tables = Tables(int(stable))
    folder = str(tmp_path / "t.lance")
    grow(folder, tables, version, stable=stable, makers=[lance])
    assert not differences(folder, tables, 40)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_tables_and_conditions(tmp_path: Path) -> None:
    wrong = []
    for seed in range(1000, 1042):
        version, stable = ("2.0", "2.1", "2.2")[seed % 3], seed % 2 == 0
        tables = Tables(seed)
        folder = str(tmp_path / f"{seed}.lance")
        grow(folder, tables, version, stable=stable, makers=[lance])
        wrong += [f"seed {seed}: {each}" for each in differences(folder, tables, 50)]
    assert not wrong


def test_two_lists_that_exclude_one_another(tmp_path: Path) -> None:
    """Not both can be false, so pylance takes the condition for true; of a NULL it is NULL."""
    lance.write_dataset(pa.table({"i": pa.array([1, 2, 3, None])}), tmp_path / "t.lance")
    condition = "i NOT IN (1, 2) OR i NOT IN (3, 4)"
    ours = pennon.dataset(tmp_path / "t.lance").to_table(filter=condition)
    theirs = lance.dataset(tmp_path / "t.lance").to_table(filter=condition)
    assert ours["i"].to_pylist() == [1, 2, 3]
    assert theirs["i"].to_pylist() == [1, 2, 3, None]
