"""Damaged files of indices: a typed error, or the rows that a scan gives.

The files are those that pylance wrote (the golden archives), of each kind that Pennon asks, in files of version
2.2, 2.0 and 0.1.  `try_index_mutants` damages and asks them in a process of its own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.child import summary_of
from tests.faults.test_mutants import SEED
from tests.faults.try_index_mutants import KINDS, TABLES
from tests.golden.archives import unpack

ARCHIVES = Path(__file__).parents[1] / "golden" / "indices"
FEW = 300
MANY = 10_000
MOST_WRONG = 0.05
"""The share of mutants that may give wrong rows: values, row numbers and bounds that are as good as others."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("indices")
    for release in sorted({name.partition("/")[0] for name in TABLES}):
        unpack(ARCHIVES / f"{release}.tar.xz", made)
    return made


def test_damaged_index_files_raise_typed_errors_or_answer(folder: Path) -> None:
    _try(folder, 0, FEW)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_damaged_index_files_raise_typed_errors_or_answer_with_many_mutants(folder: Path) -> None:
    _try(folder, FEW, MANY)


def _try(folder: Path, first: int, count: int) -> None:
    numbers = (str(SEED), str(first), str(count))
    summary = summary_of("tests.faults.try_index_mutants", str(folder), *numbers)
    print(summary["tried"], "tried:", summary["verdicts"], "wrong rows:", summary["wrong"])
    problems = summary["problems"]
    assert not problems, f"{len(problems)}, the first: {problems[0]}"
    assert summary["tried"] == count
    assert set(summary["kinds"]) == KINDS
    assert sum(summary["wrong"].values()) <= MOST_WRONG * count
