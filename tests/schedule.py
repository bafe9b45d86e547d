"""About how long tests take: the longest run first, and parts of a run take about the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

SLOW_SECONDS: Final[Mapping[str, float]] = {
    "engines": 120,
    "faults": 3,
    "faults/test_index_mutants.py": 100,
    "faults/test_mutants_2_1.py": 60,
    "faults/test_mutants_2_1.py::test_20_000_mutants_of_2_2_encodings": 300,
    "faults/test_mutants_blobs.py": 60,
    "faults/test_simulation.py": 45,
    "faults/test_vector_index_mutants.py": 100,
    "interop": 1.5,
    "interop/test_index_matrix.py::test_index_answers_after_all_deferred_compaction_chains": 120,
    "interop/test_index_read.py": 30,
    "interop/test_index_write.py": 30,
    "interop/test_text_build.py": 30,
    "interop/test_text_search.py": 30,
    "limits": 30,
    "property": 60,
    "property/test_indexed_programs.py": 45,
    "property/test_many_fragments.py": 100,
    "property/test_programs.py": 15,
    "spark": 8,
    "unit": 20,
    "unit/test_site.py": 40,
}
"""Seconds of one test marked ``slow``, by folder, module or function below tests, on two quiet cores."""
SECONDS: Final[Mapping[str, float]] = {
    "faults": 1,
    "interop": 0.2,
    "limits": 2,
    "property": 2,
    "spark": 2,
    "spark/test_embeddings.py": 4,
    "unit": 0.05,
}
"""The same of any other test."""


def seconds_of(module: str, function: str, *, is_slow: bool) -> float:
    """Return about how long a test takes, as its function, else its module, else its folder says."""
    table = SLOW_SECONDS if is_slow else SECONDS
    places = f"{module}::{function}", module, module.partition("/")[0]
    return next((table[place] for place in places if place in table), 1)


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
