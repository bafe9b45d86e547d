"""The order of a run of tests, and its parts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.schedule import SECONDS, SLOW_SECONDS, part_of, seconds_of

TESTS = Path(__file__).parents[1]


def test_expected_seconds_name_folders_modules_and_functions_that_exist() -> None:
    for place in {**SECONDS, **SLOW_SECONDS}:
        path, _, function = place.partition("::")
        assert (TESTS / path).exists(), place
        assert not function or f"def {function}(" in (TESTS / path).read_text(), place


def test_expected_seconds_are_of_the_function_then_the_module_then_the_folder() -> None:
    mutants = "faults/test_mutants_2_1.py"
    function = "test_20_000_mutants_of_2_2_encodings"
    assert seconds_of(mutants, function, is_slow=True) == SLOW_SECONDS[f"{mutants}::{function}"]
    assert seconds_of(mutants, "test_other", is_slow=True) == SLOW_SECONDS[mutants]
    assert seconds_of("faults/test_kill.py", function, is_slow=True) == SLOW_SECONDS["faults"]
    assert seconds_of(mutants, function, is_slow=False) == SECONDS["faults"]


def test_parts_hold_each_test_once_and_take_about_the_same_time() -> None:
    items = list(range(200))
    seconds = [float(1 + (item * 37) % 50) for item in items]
    parts = [part_of(items, seconds, number, 3) for number in (1, 2, 3)]
    assert Counter(item for part in parts for item in part) == Counter(items)
    assert all(part == sorted(part) for part in parts)
    sums = [sum(seconds[item] for item in part) for part in parts]
    assert max(sums) - min(sums) <= max(seconds)
