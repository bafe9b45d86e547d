"""The doctor has nothing against tables that random programs make, by Pennon and pylance in turns.

Branches, clones, tags, stable row ids, columns added and dropped, deferred compactions, indices of all kinds: each
table that a program leaves is examined deeply.  Faults of pylance that the ledger has are no false alarms: they are
what the doctor is for (F-492, F-702, F-724, F-725).
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pennon import doctor
from tests.property.programs.child import Pylance
from tests.property.programs.generate import Generator
from tests.property.programs.generate_indexed import IndexedGenerator
from tests.property.programs.runner import Runner
from tests.property.programs.steps import Step
from tests.property.programs.world import World

MANY = int(os.environ.get("PENNON_DOCTOR_PROGRAMS", "150"))
OF_PYLANCE = frozenset({"wrong-index", "index-lost-rows", "index-coverage"})
VERSIONS = {Generator: ["0.1", "2.0", "2.1", "2.2"], IndexedGenerator: ["2.0", "2.1", "2.2"]}
seen: Counter[str] = Counter()


@pytest.fixture
def pylance(tmp_path: Path) -> Iterator[Pylance]:
    with Pylance(tmp_path) as found, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield found


@pytest.fixture(autouse=True)
def examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examine all tables that are there before a program checks its old versions, its last act."""
    check, run = World.check_old_versions, World.run
    libraries: set[str] = set()

    def run_step(world: World, step: Step) -> Any:
        libraries.add(step.library)
        return run(world, step)

    def check_old_versions(world: World) -> None:
        check(world)
        for versions in sorted(tmp_path.rglob("_versions")):
            if any(versions.glob("*.manifest")):  # a branch that was dropped leaves folders
                examine(versions.parent, may_be_wrong="pylance" in libraries)
        libraries.clear()

    monkeypatch.setattr(World, "run", run_step)
    monkeypatch.setattr(World, "check_old_versions", check_old_versions)


def examine(uri: Path, *, may_be_wrong: bool) -> None:
    report = doctor.examine(uri, deep=True)
    seen["tables"] += 1
    seen["branches"] += "tree" in uri.parts
    alarms = [each for each in report if each.severity is not doctor.Severity.NOTE]
    false = [each for each in alarms if not (may_be_wrong and each.code in OF_PYLANCE)]
    seen.update(each.code for each in alarms)
    assert not false, f"{uri}: {report}"


@pytest.mark.parametrize("generator", VERSIONS, ids=["plain", "indexed"])
def test_tables_of_random_programs_give_no_alarm(
    tmp_path: Path, pylance: Pylance, generator: type[Generator]
) -> None:
    runner = Runner(tmp_path, pylance, generator)
    for seed in range(5000, 5001):
        runner.run_seed(seed, VERSIONS[generator])
    assert seen["tables"] >= 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("generator", VERSIONS, ids=["plain", "indexed"])
def test_tables_of_many_random_programs_give_no_alarm(
    tmp_path: Path, pylance: Pylance, generator: type[Generator]
) -> None:
    runner = Runner(tmp_path, pylance, generator)
    for seed in range(6000, 6000 + MANY):
        runner.run_seed(seed, VERSIONS[generator])
    print(dict(seen))
    assert seen["branches"] > 0
