"""Chunks of work: each is taken once, by whichever thread comes first."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pennon.index.kernels.vectors.work_chunks import WorkChunks


def test_shares_are_taken_in_order_each_once() -> None:
    chunks = WorkChunks(np.array([2, 2, 5, 9]))
    assert list(chunks) == [(2, 2), (2, 5), (5, 9)]
    assert list(chunks) == []


@pytest.mark.parametrize("borders", [[], [0], [7]])
def test_no_shares(borders: list[int]) -> None:
    assert list(WorkChunks(np.array(borders, np.int64))) == []


@pytest.mark.parametrize("borders", [[-1, 2], [3, 2], [0, 5, 4]])
def test_shares_that_do_not_rise_are_refused(borders: list[int]) -> None:
    with pytest.raises(ValueError, match="begin where others end"):
        WorkChunks(np.array(borders))


def test_threads_share() -> None:
    chunks = WorkChunks(np.arange(20_001))
    with ThreadPoolExecutor(4) as threads:
        taken = [each for found in threads.map(lambda _: list(chunks), range(4)) for each in found]
    assert sorted(taken) == [(at, at + 1) for at in range(20_000)]
