"""Random programs on one table with indices, by Pennon and pylance in turns, against a model in plain Python.

A program has 5 to 20 steps: indices of all kinds are made, replaced, optimized and dropped, rows and columns change, files
are compacted, put in order, restored, branched and cloned.  After each step both libraries answer filters, counts,
searches for near vectors and for words, about what the indices cover and about what they do not.
``PENNON_INDEXED_PROGRAMS=3000`` sets how many run, ``PENNON_PROGRAM_SEED=17`` runs one, and ``PENNON_PROGRAM_VERSIONS=2.1``
makes them for this file version.  A failure prints the smallest program that fails in the same way, as a script.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pennon.errors import DataLossWarning
from tests.property.programs import steps
from tests.property.programs.child import Pylance
from tests.property.programs.filters import holds, to_sql
from tests.property.programs.generate import Surroundings
from tests.property.programs.generate_indexed import IndexedGenerator
from tests.property.programs.indices import (
    SCALAR,
    VECTORS,
    distance,
    is_right,
    text_matches,
)
from tests.property.programs.model import Numbers, made_state
from tests.property.programs.runner import Program, ProgramFailedError, Runner
from tests.property.programs.steps import Dimensions, Step

SHARDS = 32
FEW = 16
MANY = int(os.environ.get("PENNON_INDEXED_PROGRAMS", "3000"))
SEED = os.environ.get("PENNON_PROGRAM_SEED")
VERSIONS = os.environ.get("PENNON_PROGRAM_VERSIONS", "2.0,2.1,2.2").split(",")


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    with Pylance(tmp_path) as pylance, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an index that is not asked says so
        warnings.filterwarnings("ignore", "list_indices is deprecated")
        warnings.simplefilter("error", DataLossWarning)
        yield Runner(tmp_path, pylance, IndexedGenerator)


def test_programs_with_indices(runner: Runner) -> None:
    for seed in range(FEW) if SEED is None else [int(SEED)]:
        runner.run_seed(seed, VERSIONS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_many_programs_with_indices(runner: Runner, shard: int) -> None:
    """All of a shard's programs run, and each that failed is printed."""
    failures = []
    for seed in range(FEW + shard, MANY, SHARDS):
        try:
            runner.run_seed(seed, VERSIONS)
        except ProgramFailedError as failure:
            failures.append(f"{failure}")
    if failures:
        pytest.fail("\n".join(failures), pytrace=False)


def test_program_with_wrong_index_answer_is_detected(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pennon's answers to filters lack their last row, which is in this process alone."""
    rows = tuple((key, key % 5) for key in range(30))
    create = {
        "columns": (("k", "int64", True), ("a", "int32", True)),
        "rows": rows,
        "max_rows_per_file": 9,
        "max_rows_per_group": 9,
    }
    index = {
        "column": "a",
        "column_kind": "int32",
        "kind": "BTREE",
        "name": "i",
        "parameters": {},
        "replace": False,
        "alone": False,
        "fewest": 0,
    }
    program = Program(
        0,
        Dimensions("2.1", stable=False, naming="V2", indexed=True),
        (Step("create", "pylance", create), Step("index", "pennon", index)),
    )
    assert runner.again(program) is None
    right = steps.ask

    def ask(dataset: Any, query: tuple[Any, ...]) -> Any:
        return right(dataset, query)[:-1] if query[0] == "keys" else right(dataset, query)

    monkeypatch.setattr(steps, "ask", ask)
    found = runner.again(program)
    assert found is not None
    assert found[1].kind == "ours answers wrongly: keys"


def test_programs_propose_every_kind_of_index(runner: Runner) -> None:
    """Steps are only drawn here, with a table that has a column for each kind."""
    made: set[str] = set()
    for seed in range(400):
        generator = IndexedGenerator(Random(seed))
        dimensions = generator.dimensions(VERSIONS)
        create = generator.create(dimensions)
        around = Surroundings(
            dimensions, {None: made_state(create, Numbers())}, {None: [1]}, {}, [], []
        )
        drawn = [generator.propose(around) for _ in range(5)]
        made |= {step.args["kind"] for step in drawn if step is not None and step.op == "index"}
    assert made == {*SCALAR, *VECTORS}


def test_model_of_indexed_programs_answers_queries() -> None:
    """The rows are fixed, so that a person can check the model's own answers."""
    row = {"k": 7, "s": "Red, lance2", "l": ["a", None], "n": None}
    assert holds(("between", "k", "int64", 7, 9), row) is True
    assert holds(("contains", "s", "phrase", "d, l"), row) is True
    assert holds(("starts", "s", "phrase", "red"), row) is False
    assert holds(("has all", "l", "labels", ("a", "b")), row) is False
    assert holds(("has any", "l", "labels", ("a", "b")), row) is True
    assert holds(("has", "n", "labels", "a"), row) is None
    assert to_sql(("starts", "s", "phrase", "it's")) == "s LIKE 'it''s%'"
    assert to_sql(("has any", "l", "labels", ("a", "b"))) == "array_has_any(l, ['a', 'b'])"
    assert text_matches(("match", "s", "AND", ("red", "LANCE2")), row)
    assert not text_matches(("match", "s", "AND", ("red", "lance")), row)
    assert text_matches(("phrase", "s", ("red", "lance2")), row)
    assert not text_matches(("phrase", "s", ("lance2", "red")), row)
    both = (
        "boolean",
        ("MUST", ("match", "s", "OR", ("red",))),
        ("MUST_NOT", ("match", "s", "OR", ("lance2",))),
    )
    assert not text_matches(both, row)
    assert distance("l2", [0, 3], [4, 0]) == 25
    assert distance("hamming", [255, 1], [0, 0]) == 9
    assert distance("cosine", [1, 0], [0, 2]) == 1
    few = ("nearest", (("k", 1),), None, True)
    assert is_right(few, [(2, 1.0)], [(1, 1.0), (2, 1.0), (3, 2.0)])
    assert not is_right(few, [(3, 2.0)], [(1, 1.0), (2, 1.0), (3, 2.0)])
