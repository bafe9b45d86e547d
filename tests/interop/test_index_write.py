"""Indices that Pennon makes, merges and moves, by itself and in turns with pylance, which reads them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import lance
import pytest

import pennon
from tests.interop.indexed_tables import Tables, differences, grow


@pytest.mark.parametrize("makers", [[pennon], [pennon, lance]], ids=["alone", "in turns"])
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_index_write_of_random_tables_and_conditions(
    tmp_path: Path, version: str, *, stable: bool, makers: list[ModuleType]
) -> None:
    tables = Tables(100 + int(stable))
    folder = str(tmp_path / "t.lance")
    done = grow(folder, tables, version, stable=stable, makers=makers)
    assert not differences(folder, tables, 25), done


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_index_write_of_many_random_tables_and_conditions(tmp_path: Path) -> None:
    wrong = []
    for seed in range(2000, 2060):
        version, stable = ("2.0", "2.1", "2.2")[seed % 3], seed % 2 == 0
        makers = [pennon, lance] if seed % 4 else [pennon]
        tables = Tables(seed)
        folder = str(tmp_path / f"{seed}.lance")
        done = grow(folder, tables, version, stable=stable, makers=makers)
        wrong += [f"seed {seed}: {each} after {done}" for each in differences(folder, tables, 50)]
    assert not wrong
