"""Samples of a table, and its batches shared out among processes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.dataset import LanceDataset
from pennon.errors import ArgumentError
from pennon.sampler import (
    FullScanSampler,
    ShardedBatchSampler,
    ShardedFixedBatchSampler,
    ShardedFragmentSampler,
    maybe_sample,
    reservoir_sampling,
)

ROWS = 1000


@pytest.fixture(scope="module")
def table() -> LanceDataset:
    rows = pa.table({"id": range(ROWS), "text": [f"t{i}" for i in range(ROWS)]})
    return pennon.write_dataset(rows, "memory://sampler/t.lance", max_rows_per_file=100)


def ids(batches: Iterable[pa.RecordBatch]) -> list[int]:
    """Return the ids of batches, in order."""
    return [number for batch in batches for number in batch["id"].to_pylist()]


@pytest.mark.parametrize(("n", "max_takes"), [(999, 7), (700, 333), (301, 300), (10, 2048), (0, 1)])
def test_sample_has_the_number_of_rows_wanted_and_no_duplicates(
    table: LanceDataset, n: int, max_takes: int
) -> None:
    batches = list(maybe_sample(table, n, ["id"], batch_size=64, max_takes=max_takes))
    found = ids(batches)
    assert len(found) == len(set(found)) == n
    assert all(batch.num_rows == 64 for batch in batches[:-1])
    assert set(found) <= set(range(ROWS))


def test_sample_of_more_rows_than_there_are_is_the_table(table: LanceDataset) -> None:
    assert ids(maybe_sample(table, ROWS, "id")) == list(range(ROWS))


def test_sample_of_runs_reaches_all_parts_of_the_table(table: LanceDataset) -> None:
    found = np.array(ids(maybe_sample(table, 100, "id", max_takes=10)))
    assert len(set(found // 100)) == 10
    assert (np.diff(found) == 1).sum() >= 90


def test_sample_with_a_filter_has_rows_that_pass(tmp_path: Path) -> None:
    rows = pa.table({"id": range(200)})
    pennon.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=30)
    found = ids(maybe_sample(tmp_path / "t.lance", 30, ["id"], filt="id % 3 = 0"))
    assert len(set(found)) == 30
    assert not any(number % 3 for number in found)
    assert len(ids(maybe_sample(str(tmp_path / "t.lance"), 150, "id", filt="id < 9"))) == 9


def test_sample_of_a_negative_number_is_an_argument_error(table: LanceDataset) -> None:
    with pytest.raises(ArgumentError, match="n is 0 or more"):
        list(maybe_sample(table, -1, "id"))


def test_reservoir_takes_every_item_of_a_short_stream_and_k_of_a_long_one() -> None:
    assert sorted(reservoir_sampling(range(5), 9)) == [0, 1, 2, 3, 4]
    counts = np.bincount([x for _ in range(400) for x in reservoir_sampling(range(20), 5)])
    assert counts.min() > 50
    assert counts.max() < 160


def test_fragments_of_ranks_are_all_fragments_once(table: LanceDataset) -> None:
    for randomize in (False, True):
        parts = [ids(ShardedFragmentSampler(rank, 3, randomize)(table)) for rank in range(3)]
        assert sorted(chain(*parts)) == list(range(ROWS))
    assert ids(FullScanSampler()(table, filter="id > 990")) == list(range(991, ROWS))


def test_fragments_have_another_order_in_each_epoch(table: LanceDataset) -> None:
    sampler = ShardedFragmentSampler(0, 1, randomize=True, seed=3)
    orders = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        orders.append(ids(sampler(table, batch_size=100)))
    assert orders[0] == orders[2] != orders[1]


@pytest.mark.parametrize("randomize", [False, True])
def test_batches_of_ranks_are_all_rows_once(table: LanceDataset, randomize: bool) -> None:
    parts = [
        list(ShardedBatchSampler(rank, 3, randomize)(table, batch_size=30, columns=["id"]))
        for rank in range(3)
    ]
    assert sorted(ids(batch for part in parts for batch in part)) == list(range(ROWS))
    first = ids(parts[1])
    assert (first == sorted(first)) is not randomize
    assert {number // 30 % 3 for number in first} == {1}


@pytest.mark.parametrize("randomize", [False, True])
def test_filtered_rows_of_ranks_are_those_that_pass_once(
    table: LanceDataset, randomize: bool
) -> None:
    parts = [
        list(ShardedBatchSampler(rank, 7, randomize)(table, batch_size=9, filter="id % 2 = 0"))
        for rank in range(7)
    ]
    assert sorted(ids(batch for part in parts for batch in part)) == list(range(0, ROWS, 2))
    assert ids(parts[3])[:2] == [6, 20] or randomize
    assert {batch.num_rows for batch in parts[0]} == {9}


def test_filtered_rows_of_a_rank_beyond_the_first_batches_are_found(table: LanceDataset) -> None:
    found = ids(ShardedBatchSampler(4, 5)(table, columns=["id"], filter="id % 100 = 0"))
    assert found == [400, 900]
    assert ids(ShardedBatchSampler(4, 5)(table, columns=["id"], filter="id < 3")) == []


def test_fixed_batches_are_consecutive_row_numbers() -> None:
    parts = [ShardedFixedBatchSampler(r, 4, batch_size=30, total_num_rows=250) for r in range(4)]
    assert [len(part) for part in parts] == [3, 3, 3, 3]
    assert list(chain(*chain(*parts))) == list(range(250))
    mixed = ShardedFixedBatchSampler(0, 1, randomize=True, seed=5, batch_size=10, total_num_rows=95)
    assert sorted(chain(*mixed)) == list(range(95))
    assert list(mixed) != sorted(mixed)
    assert list(ShardedFixedBatchSampler(2, 4, batch_size=10, total_num_rows=2)) == []
    assert len(ShardedFixedBatchSampler(0, 1)) == 0


def test_rank_outside_the_world_is_an_argument_error() -> None:
    with pytest.raises(ArgumentError, match="below world_size, got 2 of 2"):
        ShardedBatchSampler(2, 2)
    with pytest.raises(ArgumentError, match="batch_size is 1 or more"):
        ShardedFixedBatchSampler(0, 1, total_num_rows=5)
