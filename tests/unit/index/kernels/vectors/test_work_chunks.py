"""Shares of work: each is taken once, by whichever thread comes first."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pennon.index.kernels.vectors.work_chunks import WorkChunks


def test_work_chunks_are_taken_in_order_once() -> None:
    shares = WorkChunks(np.array([2, 2, 5, 9]))
    assert list(shares) == [(2, 2), (2, 5), (5, 9)]
    assert list(shares) == []


@pytest.mark.parametrize("borders", [[], [0], [7]])
def test_work_chunks_without_borders_are_empty(borders: list[int]) -> None:
    assert list(WorkChunks(np.array(borders, np.int64))) == []


@pytest.mark.parametrize("borders", [[-1, 2], [3, 2], [0, 5, 4]])
def test_work_chunks_with_descending_borders_are_refused(borders: list[int]) -> None:
    with pytest.raises(ValueError, match="begin where others end"):
        WorkChunks(np.array(borders))


def test_work_chunks_are_shared_by_threads() -> None:
    shares = WorkChunks(np.arange(20_001))
    with ThreadPoolExecutor(4) as threads:
        taken = [each for found in threads.map(lambda _: list(shares), range(4)) for each in found]
    assert sorted(taken) == [(at, at + 1) for at in range(20_000)]
