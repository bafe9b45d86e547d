"""About how long tests take: the longest run first, and parts of a run take about the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

SLOW_SECONDS: Final[Mapping[str, float]] = {
    "engines": 120,
    "faults": 5,
    "faults/test_index_mutants.py": 120,
    "faults/test_mutants_2_1.py": 240,
    "faults/test_mutants_blobs.py": 120,
    "faults/test_mutants_bounds.py": 120,
    "faults/test_text_index_mutants.py": 60,
    "faults/test_vector_index_mutants.py": 120,
    "interop": 4,
    "limits": 30,
    "property": 60,
    "spark": 20,
    "unit": 20,
}
"""Seconds of one test marked ``slow``, by folder or module below tests, on two quiet cores."""
SECONDS: Final[Mapping[str, float]] = {
    "faults": 1,
    "interop": 0.2,
    "limits": 2,
    "property": 2,
    "spark": 2,
    "unit": 0.05,
}
"""The same of any other test."""


def seconds_of(place: str, *, is_slow: bool) -> float:
    """Return about how long a test of a module takes, as its module or else its folder says."""
    table = SLOW_SECONDS if is_slow else SECONDS
    return table.get(place, table.get(place.partition("/")[0], 1))


def part_of(items: Sequence[T], seconds: Sequence[float], number: int, count: int) -> list[T]:
    """Return the items of one of several parts, in their order; ``number`` counts from 1.

    Each item, the longest first, goes to the part that has the fewest seconds so far.
    """
    sums, chosen = [0.0] * count, []
    for at in sorted(range(len(items)), key=lambda at: -seconds[at]):
        least = min(range(count), key=sums.__getitem__)
        sums[least] += seconds[at]
        if least == number - 1:
            chosen.append(at)
    return [items[at] for at in sorted(chosen)]
