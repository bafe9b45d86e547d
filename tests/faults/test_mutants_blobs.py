"""Damage in any file of a table with blobs of version 2: typed errors or valid rows.

Descriptions, the page they stand in, files of blobs, files outside, base paths and the manifest are
damaged (`blob_files`), and read in a process of its own (`try_blob_mutants`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.blob_files import COLUMNS
from tests.faults.child import summary_of
from tests.faults.test_mutants_2_1 import SEED

FEW = 96
MANY = 1500
PARTS = {
    *("kind", "position", "size", "id", "uri", "text of the uri"),
    *("entries", "row index", "layout", "column", "descriptor", "rows"),
    *("file of blobs", "file outside", "base path", "manifest"),
}


@pytest.fixture(scope="module", params=["lance", "pennon"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("blobs") / str(request.param)
    summary_of("tests.faults.blob_files", request.param, str(made))
    return made


def test_damaged_blob_tables_raise_typed_errors_or_read(folder: Path) -> None:
    _try(folder, 0, FEW)


@pytest.mark.slow
def test_damaged_blob_tables_raise_typed_errors_or_read_with_many_mutants(folder: Path) -> None:
    refused = _try(folder, FEW, MANY)
    assert refused >= PARTS, "damage that no error tells of"


def _try(folder: Path, first: int, count: int) -> set[str]:
    """Try mutants of all tables; return of which parts some were refused."""
    numbers = (str(SEED), str(first), str(count))
    summary = summary_of("tests.faults.try_blob_mutants", str(folder), *numbers)
    print(summary["tried"], "tried,", summary["refused"], "refused")
    problems = summary["problems"]
    assert not problems, f"{len(problems)}, the first: {problems[0]['mutant']}\n" + str(
        problems[0]["problem"]
    )
    assert summary["tried"] == count * len(COLUMNS)
    assert summary["refused"] > summary["tried"] / 3, "the damage does not reach the reader"
    assert set(summary["parts"]) >= PARTS
    return set(summary["refused parts"])
