"""Levels to arrays: the kernels against a twin that builds Python values from levels."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pennon.encoding.kernels.levels import every_nth, lists_of, validity_of
from pennon.errors import FormatError
from tests.seeds import each_seed

NONE = np.empty(0, np.uint16)


def levels(*values: int) -> np.ndarray:
    return np.array(values, np.uint16)


def bits_of(bitmap: np.ndarray | None, count: int) -> list[int]:
    assert bitmap is not None
    return [int(bitmap[i // 8]) >> (i % 8) & 1 for i in range(count)]


@each_seed(40)
def test_validity_of_levels_equals_the_twin(seed: int) -> None:
    chance = random.Random(seed)
    highest = chance.randint(0, 5)
    visible = [chance.random() < 0.7 for _ in range(highest + 1)]
    if seed % 3 == 0:
        visible = [True] * (highest + 1)
    stored = [chance.randint(0, highest) for _ in range(chance.randint(0, 50))]
    valid_to = chance.randint(0, highest)
    bitmap, slots, nulls = validity_of(levels(*stored), np.array(visible, np.uint8), valid_to)
    wanted = [level <= valid_to for level in stored if visible[level]]
    assert slots == len(wanted)
    assert bits_of(bitmap, slots) == wanted
    assert nulls == wanted.count(False)
    assert len(bitmap) == -(-slots // 8)


def test_definition_levels_above_the_highest_are_refused() -> None:
    with pytest.raises(FormatError, match="definition level 3, where the highest is 2"):
        validity_of(levels(0, 3), np.ones(3, np.uint8), 0)


@pytest.mark.parametrize("wide", [False, True])
def test_lists_of_levels_without_nulls(*, wide: bool) -> None:
    """[[1, 2], [3]], [[4]]: the inner lists, then the outer ones."""
    offsets, validity, rep, _ = lists_of(levels(2, 0, 1, 2), None, 0, -1, 0, wide)
    assert (offsets.tolist(), validity, rep.tolist()) == ([0, 2, 3, 4], None, [1, 0, 1])
    offsets, validity, rep, _ = lists_of(rep, None, 0, -1, 0, wide)
    assert (offsets.tolist(), rep.tolist()) == ([0, 2, 3], [0, 0])
    assert offsets.dtype == (np.int64 if wide else np.int32)


def test_lists_of_levels_with_nulls() -> None:
    """[1, NULL], [], NULL, [2] in a struct that is NULL in the last row.

    Levels: 1 a NULL item, 2 a NULL list, 3 an empty one, 4 a NULL struct.
    """
    rep = levels(1, 0, 1, 1, 1, 1)
    definition = levels(0, 1, 3, 2, 0, 4)
    offsets, validity, outer_rep, outer_def = lists_of(rep, definition, 1, 3, 4, wide=False)
    assert offsets.tolist() == [0, 2, 2, 2, 3, 3]
    assert bits_of(validity, 5) == [1, 1, 0, 1, 0]
    assert outer_rep.tolist() == [0] * 5
    assert outer_def.tolist() == [0, 3, 2, 0, 4]


def test_lists_under_null_outer_lists_have_no_slot() -> None:
    """[[1], NULL], NULL: the NULL of the outer layer (level 2) has no slot among the inner lists."""
    rep, definition = levels(2, 1, 2), levels(0, 1, 2)
    offsets, validity, outer_rep, outer_def = lists_of(rep, definition, 0, -1, 1, wide=False)
    assert (offsets.tolist(), bits_of(validity, 2)) == ([0, 1, 1], [1, 0])
    offsets, validity, _, _ = lists_of(outer_rep, outer_def, 1, -1, 2, wide=False)
    assert (offsets.tolist(), bits_of(validity, 2)) == ([0, 2, 2], [1, 0])


def plain_lists_of(
    rep: list[int], definition: list[int], valid_to: int, empty_level: int, highest: int
) -> tuple[list[int], list[bool], list[tuple[int, int]]]:
    """The twin of lists_of: offsets, validity, and the levels that stay."""
    offsets, valid, outer, items = [], [], [], 0
    for r, d in zip(rep, definition, strict=True):
        if r:
            outer.append((r - 1, d))
            if d <= highest:
                offsets.append(items)
                valid.append(d <= valid_to or d == empty_level)
        items += r == 0 or d <= valid_to
    return [*offsets, items], valid, outer


@each_seed(60)
def test_lists_of_random_levels(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.choice([1, 7, 8, 9, 63, 64, 65, 128, 200, 5000])
    valid_to = chance.randint(0, 2)
    empty_level = chance.choice([-1, valid_to + 1])
    highest = valid_to + chance.randint(0, 3)
    rep = [1, *(chance.randint(0, 2) for _ in range(count - 1))]
    definition = [chance.randint(0, highest + 1) for _ in rep]
    wanted = plain_lists_of(rep, definition, valid_to, empty_level, highest)
    for wide in (False, True):
        for is_outermost in (False, True):
            offsets, validity, outer_rep, outer_def = lists_of(
                levels(*rep),
                levels(*definition),
                valid_to,
                empty_level,
                highest,
                wide,
                is_outermost,
            )
            assert offsets.tolist() == wanted[0]
            without = lists_of(
                levels(*rep),
                levels(*definition),
                valid_to,
                empty_level,
                highest,
                wide,
                is_outermost,
                has_nulls=False,
            )
            assert (without[0].tolist(), without[1]) == (wanted[0], None)
            if all(wanted[1]):
                assert validity is None
            else:
                assert bits_of(validity, len(wanted[1])) == wanted[1]
            assert outer_def is not None
            outer = list(zip(outer_rep.tolist(), outer_def.tolist(), strict=True))
            assert outer == ([] if is_outermost else wanted[2])


def test_repetition_levels_without_list_start_are_refused() -> None:
    with pytest.raises(FormatError, match="in the middle of a list"):
        lists_of(levels(0, 1), None, 0, -1, 0, wide=False)
    with pytest.raises(FormatError, match="1 repetition levels, but 2"):
        lists_of(levels(1), levels(0, 0), 0, -1, 0, wide=False)


def test_every_nth_level_of_fixed_size_lists() -> None:
    visible = np.array([1, 1, 0], np.uint8)
    rep, definition = every_nth(NONE, levels(0, 1, 1, 0), visible, 2)
    assert (rep, definition.tolist()) == (None, [0, 1])
    rep, definition = every_nth(levels(1, 0, 1, 1, 0), levels(0, 1, 2, 1, 0), visible, 2)
    assert (rep.tolist(), definition.tolist()) == ([1, 1, 1], [0, 2, 1])
    for broken in (levels(0, 1, 1), levels(0, 2, 0, 0), levels(0, 3)):
        with pytest.raises(FormatError, match="no whole lists of 2"):
            every_nth(NONE, broken, visible, 2)
