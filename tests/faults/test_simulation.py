"""The simulator: no commit is lost, doubled or hidden; and the bugs that one knows of are found.

``PENNON_SIMULATIONS`` says how many seeds the long run has, ``PENNON_SIMULATION_SEED`` the first of them.
To see what a seed does: ``print(simulate(seed, log=True).story())`` inside of ``with virtual():``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.faults.simulation.plants import PLANTS
from tests.faults.simulation.seams import virtual
from tests.faults.simulation.simulation import Run, simulate

SEEDS = 20_000
FIRST_SEED = 0
_SOON = 12
"""Of the short run, how many seeds there are in each of its parts."""
_PARTS = 16
"""The long run is in so many parts, which processors share."""
_AT_MOST = 400
"""A planted bug is found within so many seeds from the one that is known to show it."""

TRACES = """
from tests.faults.simulation.seams import virtual
from tests.faults.simulation.simulation import simulate
with virtual():
    print(*(simulate(seed).trace for seed in range(8)))
"""


@pytest.fixture(autouse=True)
def _virtual() -> Iterator[None]:
    with virtual():
        yield


def told(runs: list[Run]) -> str:
    return "\n\n".join(run.story() for run in runs[:3])


@pytest.mark.parametrize("part", range(12))
def test_simulated_commits_are_not_lost_or_doubled(part: int) -> None:
    start = part * _SOON
    wrong = [run for seed in range(start, start + _SOON) if (run := simulate(seed)).wrongs]
    assert not wrong, told(wrong)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("part", range(_PARTS))
def test_simulated_commits_are_not_lost_or_doubled_with_many_seeds(part: int) -> None:
    first = int(os.environ.get("PENNON_SIMULATION_SEED", FIRST_SEED))
    count = int(os.environ.get("PENNON_SIMULATIONS", SEEDS))
    seeds = range(first + part, first + count, _PARTS)
    wrong = [run for seed in seeds if (run := simulate(seed)).wrongs]
    assert not wrong, told(wrong)


def test_simulation_is_determined_by_its_seed() -> None:
    runs = [[simulate(seed) for seed in range(8)] for _ in range(2)]
    traces = [[run.trace for run in each] for each in runs]
    assert traces[0] == traces[1]
    assert len(set(traces[0])) == len(traces[0])


def test_simulation_is_equal_in_another_process() -> None:
    """Nothing goes by the order of sets, by addresses, or by what ran before."""
    found = [
        subprocess.run(
            [sys.executable, "-c", TRACES],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.split()
        for seed in ("1", "2")
    ]
    assert found[0] == found[1] == [simulate(seed).trace for seed in range(8)]


@pytest.mark.parametrize("name", PLANTS)
def test_simulator_finds_each_planted_bug(name: str) -> None:
    plant = PLANTS[name]
    seeds = iter(range(plant.first, plant.first + _AT_MOST))
    with plant.planted():
        found = next((seed for seed in seeds if simulate(seed, plant.focus).wrongs), None)
    assert found is not None, (
        f"{plant.about} was not found in {_AT_MOST} seeds from {plant.first} on"
    )
    clean = simulate(found, plant.focus)
    assert not clean.wrongs, clean.story()
