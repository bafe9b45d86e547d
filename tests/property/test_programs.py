"""Random programs on one table, by Pennon and pylance in turns, against a model in plain Python.

A program has 5 to 40 steps of all that changes a table; after each of them both libraries and the
model agree.  ``PENNON_PROGRAMS=3000`` sets how many run, ``PENNON_PROGRAM_SEED=17`` runs one, and
``PENNON_PROGRAM_VERSIONS=2.1,2.2`` makes them for these file versions.  A failure prints the smallest
program that fails in the same way, as a script.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest

from pennon.errors import DataLossWarning
from tests.property.programs.child import Pylance
from tests.property.programs.filters import holds, random_filter, to_sql
from tests.property.programs.generate import Generator
from tests.property.programs.kinds import FILE_VERSIONS
from tests.property.programs.lines import DisagreementError
from tests.property.programs.runner import Program, ProgramFailedError, Runner
from tests.property.programs.steps import EXECUTE, Dimensions, Step

SHARDS = 32
FEW = 16
MANY = int(os.environ.get("PENNON_PROGRAMS", "3000"))
SEED = os.environ.get("PENNON_PROGRAM_SEED")
VERSIONS = os.environ.get("PENNON_PROGRAM_VERSIONS", ",".join(FILE_VERSIONS)).split(",")


ONE_ROW = {
    "columns": (("k", "int64", True),),
    "rows": ((0,),),
    "max_rows_per_file": 9,
    "max_rows_per_group": 9,
}


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    with Pylance(tmp_path) as pylance, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "list_indices is deprecated")
        warnings.simplefilter("error", DataLossWarning)  # programs give nothing that would be lost
        yield Runner(tmp_path, pylance)


def test_random_programs_equal_the_model(runner: Runner) -> None:
    for seed in range(FEW) if SEED is None else [int(SEED)]:
        runner.run_seed(seed, VERSIONS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_many_random_programs_equal_the_model(runner: Runner, shard: int) -> None:
    """All of a shard's programs run, and what is printed is each that failed."""
    failures = []
    for seed in range(FEW + shard, MANY, SHARDS):
        try:
            runner.run_seed(seed, VERSIONS)
        except ProgramFailedError as failure:
            failures.append(f"{failure}")
    if failures:
        pytest.fail("\n".join(failures), pytrace=False)


def test_a_failing_program_becomes_small(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that goes wrong at its last step is left with the steps that matter."""
    columns = (("k", "int64", True), ("a", "int32", True))
    rows = tuple((key, 7) for key in range(20))
    create = {"columns": columns, "rows": rows, "max_rows_per_file": 9, "max_rows_per_group": 9}
    program = Program(
        0,
        Dimensions("2.1", stable=False, naming="V2"),
        (
            Step("create", "pylance", create),
            Step("config", "pylance", {"values": {"a": "1"}}),
            Step("nullable", "pylance", {"name": "a", "nullable": False}),
            Step("delete", "pennon", {"where": ("mod", "k", 2, 0)}),
        ),
    )
    monkeypatch.setitem(EXECUTE, "delete", lambda dataset, where: {"num_deleted_rows": 0})
    found = runner.again(program)
    assert found is not None
    small, error = runner.shrink(*found)
    assert [step.op for step in small.steps] == ["create", "delete"]
    assert len(small.steps[0].args["rows"]) == 1
    assert error.kind == found[1].kind
    with pytest.raises(DisagreementError):
        exec(small.script())


def test_program_with_lost_delete_is_detected(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, that is, in which Pennon works."""

    def delete(dataset: Any, where: Any) -> dict[str, int]:
        return {"num_deleted_rows": 0}

    monkeypatch.setitem(EXECUTE, "delete", delete)
    program = Program(
        0,
        Dimensions("2.0", stable=True, naming="V1"),
        (
            Step("create", "pylance", ONE_ROW),
            Step("delete", "pennon", {"where": ("mod", "k", 2, 0)}),
        ),
    )
    found = runner.again(program)
    assert found is not None
    assert found[1].kind == "the model is another after delete by pennon"


@pytest.mark.parametrize(
    ("value", "values", "outcome"),
    [
        (34, {"a": ("column", "b")}, "late"),
        (34, {"b": ("column", "a")}, "late"),
        (300, {"b": ("column", "a")}, "refused"),
        (127, {"b": ("plus", "b", 1)}, "late"),
    ],
    ids=["wider", "narrower", "too large", "wraps around"],
)
def test_a_late_update_casts_to_the_newest_type(
    runner: Runner, value: int, values: dict[str, Any], outcome: str
) -> None:
    """Its expressions are of the columns as they are by then; the model knows what they make."""
    columns = (("k", "int64", True), ("a", "int64", True), ("b", "int64", True))
    create = {**ONE_ROW, "columns": columns, "rows": ((0, value, 127),)}
    program = Program(
        0,
        Dimensions("2.1", stable=False, naming="V2"),
        (
            Step("create", "pylance", create),
            Step("hold", "pennon", {"number": 0}),
            Step("cast", "pylance", {"name": "b", "kind": "int8"}),
            Step("update", "pennon", {"values": values, "where": None}, handle=0),
        ),
    )
    assert runner.again(program) is None
    assert runner.done[f"pennon update {outcome}"] == 1


def test_program_failure_reports_seed_and_script(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From which it can be run again, without the seed, too."""
    delete = Step("delete", "pennon", {"where": ("mod", "k", 2, 0)})
    config = Step("config", "pennon", {"values": {"a": "1"}})
    monkeypatch.setitem(EXECUTE, "delete", lambda dataset, where: {"num_deleted_rows": 0})
    monkeypatch.setattr(Generator, "create", lambda *_: Step("create", "pennon", ONE_ROW))
    monkeypatch.setattr(Generator, "propose", Mock(side_effect=[config, delete, *[config] * 40]))
    with pytest.raises(ProgramFailedError) as failed:
        runner.run_seed(17, ["2.1"])
    said = str(failed.value)
    assert said.startswith("PENNON_PROGRAM_SEED=17 PENNON_PROGRAM_VERSIONS=2.1: the model is")
    script = said[said.index("import datetime") :]
    assert ("op='config'" in script, script.count("op='delete'")) == (False, 1)
    with pytest.raises(DisagreementError):
        exec(script)


def test_program_filters_equal_their_sql() -> None:
    """Of a fixed row, so that the model's own filters are held by numbers that a person can check."""
    row = {"k": 7, "a": None, "s": "ab"}
    assert holds(("and", ("null", "a"), ("mod", "k", 2, 1)), row) is True
    assert holds(("not", ("compare", "a", "<", "int32", 3)), row) is None
    assert holds(("or", ("compare", "a", "<", "int32", 3), ("like", "s", "a")), row) is True
    assert holds(("in", "s", "string", ("it's", "b")), row) is False
    assert to_sql(("in", "s", "string", ("it's", "b"))) == "s IN ('it''s', 'b')"
    columns = [("k", "int64"), ("a", "int32"), ("s", "string")]
    seen = {to_sql(random_filter(Random(seed), columns, "2.1")) for seed in range(200)}
    assert len(seen) > 100
