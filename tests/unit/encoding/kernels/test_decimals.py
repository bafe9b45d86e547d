"""The check of decimals against Python's integers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pennon.encoding.kernels.decimals import are_small
from tests.seeds import each_seed


def words(values: list[int], count: int) -> np.ndarray:
    data = b"".join(value.to_bytes(8 * count, "little", signed=True) for value in values)
    return np.frombuffer(data, np.int64)


@pytest.mark.parametrize("count", [2, 4])
@each_seed(50)
def test_are_small_equals_integer_comparison(seed: int, count: int) -> None:
    chance = random.Random(seed)
    limit = 10 ** chance.randint(1, 18)
    values = [chance.randint(1 - limit, limit - 1) for _ in range(chance.randint(0, 20))]
    assert are_small(words(values, count), count, limit)
    odd = chance.choice([limit, -limit, 1 << 64, -(1 << 64), (1 << 100) + 1, -1 << 63, 1 << 63])
    values.insert(chance.randint(0, len(values)), odd)
    assert not are_small(words(values, count), count, limit)


def test_are_small_of_partial_values_is_refused() -> None:
    with pytest.raises(ValueError, match="whole"):
        are_small(np.zeros(3, np.int64), 2, 10)
