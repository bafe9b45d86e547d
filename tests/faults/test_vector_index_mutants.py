"""Damaged files of vector indices: a typed error, or rows in order; no crash, no hang, no gigabyte.

The files are those of five releases (the golden archives), of each kind and layout, and our own.  `try_vector_index_mutants`
damages and searches them in a process of its own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.child import summary_of
from tests.faults.test_mutants import SEED
from tests.faults.try_vector_index_mutants import TABLES, write_ours
from tests.golden.archives import unpack

ARCHIVES = Path(__file__).parents[1] / "golden" / "vector_indices"
FEW = 400
MANY = 10_000
MOST_OTHERS = 0.1
"""The share of mutants that may give other rows: codes, centroids and factors that are as good as others."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("vectors")
    for release in sorted({name.partition("/")[0] for name in TABLES}):
        unpack(ARCHIVES / f"{release}.tar.xz", made)
    for path in made.rglob("*.idx"):
        path.parent.chmod(0o755)
    write_ours(made)
    return made


def test_damaged_vector_index_raises_typed_errors_or_answers(folder: Path) -> None:
    _try(folder, 0, FEW)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_damaged_vector_index_raises_typed_errors_or_answers_with_many_mutants(
    folder: Path,
) -> None:
    _try(folder, FEW, MANY)


def _try(folder: Path, first: int, count: int) -> None:
    numbers = (str(SEED), str(first), str(count))
    summary = summary_of("tests.faults.try_vector_index_mutants", str(folder), *numbers)
    print(summary["tried"], "tried:", summary["verdicts"])
    problems = summary["problems"]
    assert not problems, f"{len(problems)}, the first: {problems[0]}"
    assert summary["tried"] == count
    assert summary["verdicts"]["right"] > 0.1 * count
    assert summary["verdicts"].get("other rows", 0) <= MOST_OTHERS * count
