"""The order of rows: a permutation, computed in pieces, that shuffles well."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from pennon.errors import ArgumentError
from pennon.training import Mixture, Order
from pennon.training.mixture import parts_of

PINNED = [5, 9, 6, 2, 7, 3, 4, 1, 8, 0]
PINNED_BLOCKS = [9, 3, 4, 5, 6, 0, 8, 2, 7, 1]

SHAPES = [(1, 1), (4, 1), (7, 3), (64, 5), (1000, 2), (3, 10_000), (7, 0), (1, 0)]


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 10, 63, 64, 65, 1000, 4097])
@pytest.mark.parametrize(("block_rows", "window_blocks"), SHAPES)
def test_order_reads_each_row_once_an_epoch(rows: int, block_rows: int, window_blocks: int) -> None:
    for epoch in range(3):
        order = Order(rows, 5, block_rows=block_rows, window_blocks=window_blocks)
        found = order.rows_at(epoch, 0, rows)
        assert sorted(found.tolist()) == list(range(rows))


@pytest.mark.parametrize(("block_rows", "window_blocks"), SHAPES)
def test_order_in_pieces_equals_the_order_at_once(block_rows: int, window_blocks: int) -> None:
    order = Order(1777, 9, block_rows=block_rows, window_blocks=window_blocks)
    whole = order.rows_at(2, 0, 1777)
    random = np.random.default_rng(1)
    for _ in range(200):
        start, end = np.sort(random.integers(0, 1778, 2)).tolist()
        assert (order.rows_at(2, start, end) == whole[start:end]).all()


def test_order_of_another_seed_or_epoch_differs() -> None:
    orders = [
        tuple(Order(100, seed).rows_at(epoch, 0, 100).tolist())
        for seed in range(4)
        for epoch in range(4)
    ]
    assert len(set(orders)) == 16


def test_order_is_the_same_in_each_release() -> None:
    assert Order(10, 7).rows_at(0, 0, 10).tolist() == PINNED
    assert Order(10, 7, block_rows=3, window_blocks=2).rows_at(1, 0, 10).tolist() == PINNED_BLOCKS


@pytest.mark.parametrize("rows", [1, 31, 32, 1000])
def test_rows_of_a_block_without_a_window_keep_their_order(rows: int) -> None:
    order = Order(rows, 3, block_rows=8, window_blocks=0).rows_at(1, 0, rows)
    starts = [at for at, row in enumerate(order.tolist()) if row % 8 == 0]
    blocks = np.split(order, starts[1:])
    assert all((np.diff(block) == 1).all() for block in blocks)
    assert sorted(int(block[0]) for block in blocks) == list(range(0, rows, 8))
    assert rows < 1000 or [int(block[0]) for block in blocks] != list(range(0, rows, 8))


def test_rank_correlation_of_shuffled_rows_is_that_of_chance() -> None:
    rows = 200_000
    places = np.arange(rows)
    for seed in range(5):
        found = Order(rows, seed).rows_at(0, 0, rows)
        next_epoch = Order(rows, seed).rows_at(1, 0, rows)
        assert abs(_correlation(places, found)) < 0.01
        assert abs(_correlation(found, next_epoch)) < 0.01
        assert abs(_correlation(found[:-1], found[1:])) < 0.01


def test_neighbours_in_a_table_meet_in_a_batch_as_seldom_as_by_chance() -> None:
    rows, batch = 100_000, 250
    met = 0
    for seed in range(20):
        found = Order(rows, seed).rows_at(0, 0, rows)
        place = np.empty(rows, np.int64)
        place[found] = np.arange(rows) // batch
        met += int((place[1:] == place[:-1]).sum())
    by_chance = 20 * (rows - 1) * (batch - 1) / (rows - 1)
    assert abs(met - by_chance) < 5 * by_chance**0.5


def test_each_row_is_equally_likely_at_each_position() -> None:
    counts = np.zeros((12, 12), np.int64)
    for seed in range(6000):
        counts[np.arange(12), Order(12, seed).rows_at(0, 0, 12)] += 1
    chi_squared = float(((counts - 500.0) ** 2 / 500.0).sum())
    assert chi_squared < 121 + 5 * (2 * 121) ** 0.5


def test_order_of_a_billion_rows_begins_anywhere_at_once() -> None:
    order = Order(1_000_000_000, 3, block_rows=64, window_blocks=1024)
    seconds = []
    for position in range(0, 1_000_000_000, 100_000_000):
        begun = time.perf_counter()
        order.rows_at(0, position, position + 256)
        seconds.append(time.perf_counter() - begun)
    assert min(seconds) < 0.02


@pytest.mark.parametrize(
    "wrong", [{"rows": -1}, {"rows": 1, "block_rows": 0}, {"rows": 1, "window_blocks": -1}]
)
def test_order_of_impossible_numbers_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="must be from"):
        Order(**wrong)


def test_position_outside_the_order_is_refused() -> None:
    for start, end in [(-1, 2), (3, 2), (0, 11)]:
        with pytest.raises(ArgumentError, match="are not among the 10"):
            Order(10).rows_at(0, start, end)


def test_mixture_gives_each_table_its_part_of_each_cycle() -> None:
    mixture = Mixture((Order(700, 1), Order(400, 2)), (7, 3))
    tables, rows = mixture.rows_at(0, 0, mixture.rows)
    assert mixture.rows == 1000
    assert (tables.reshape(100, 10).sum(axis=1) == 3).all()
    assert sorted(rows[tables == 0].tolist()) == list(range(700))
    assert len(set(rows[tables == 1].tolist())) == 300


def test_mixture_in_pieces_equals_the_mixture_at_once() -> None:
    mixture = Mixture((Order(700, 1), Order(400, 2), Order(90, 3)), (7, 3, 1))
    tables, rows = mixture.rows_at(4, 0, mixture.rows)
    for start in range(0, mixture.rows - 40, 13):
        some_tables, some_rows = mixture.rows_at(4, start, start + 37)
        assert (some_tables == tables[start : start + 37]).all()
        assert (some_rows == rows[start : start + 37]).all()


def test_weights_become_small_whole_parts() -> None:
    assert parts_of([0.7, 0.3]) == (7, 3)
    assert parts_of([1, 1]) == (1, 1)
    assert parts_of([0.25, 0.5]) == (1, 2)
    for wrong in (0, -1, float("inf"), float("nan"), True):
        with pytest.raises(ArgumentError, match="finite number above 0"):
            parts_of([1, wrong])


def _correlation(a: Any, b: Any) -> float:
    return float(np.corrcoef(a, b)[0, 1])
