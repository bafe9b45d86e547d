"""Indices of several pages are looked up in the dictionary of each."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.encoding.kernels.dictionaries import look_up


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("index_bits", [8, 16, 32, 64])
def test_look_up_equals_the_twin(bits: int, index_bits: int) -> None:
    random = np.random.default_rng(bits + index_bits)
    items = [random.integers(0, 1 << (bits - 1), n).astype(f"u{bits // 8}") for n in (5, 0, 200, 1)]
    counts = [30, 0, 100, 4]
    parts = [random.integers(0, n, count) for n, count in zip((5, 1, 200, 1), counts, strict=True)]
    indices = np.concatenate(parts).astype(f"u{index_bits // 8}")
    ends = np.cumsum(counts)
    found = np.ones(len(indices), items[0].dtype)
    assert look_up(items, ends, indices, found) == 0
    named = [each[part] for each, part in zip(items, parts, strict=True) if len(part)]
    assert found.tolist() == np.concatenate(named).tolist()
    indices[[0, 33]] = 5, 200
    assert look_up(items, ends, indices, found) == 2
    assert (found[0], found[33]) == (0, 0)


def test_look_up_refuses_arrays_that_do_not_fit() -> None:
    items, indices, found = [np.arange(3, dtype=np.uint8)], np.zeros(4, np.uint8), np.zeros(4, "u1")
    with pytest.raises(ValueError, match="values behind"):
        look_up(items, np.array([3]), indices, found)
    for end in (5, -1):
        with pytest.raises(ValueError, match="ends fall"):
            look_up(items, np.array([end]), indices, found)
    with pytest.raises(ValueError, match="ends fall"):
        look_up(items * 2, np.array([4, 2]), indices, found)
    for wrong in ((items * 2, [4], found), (items, [4], found[1:])):
        with pytest.raises(ValueError, match="differ in number"):
            look_up(wrong[0], np.array(wrong[1]), indices, wrong[2])
    assert look_up([items[0][:0]], np.array([4]), indices, found) == 4
