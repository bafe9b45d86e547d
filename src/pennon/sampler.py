"""Samples of a table, and its batches shared out among processes, with the names of ``lance.sampler``.

For training, `pennon.torch` has a better order: it resumes at any place, with any number of processes.
"""

from __future__ import annotations

import heapq
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from functools import partial
from importlib import import_module
from itertools import count, islice
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa

from pennon.core.thread_pools import map_in_order
from pennon.dataset.fragment import LanceFragment
from pennon.dataset.lance_dataset import LanceDataset
from pennon.dataset.open import dataset as open_dataset
from pennon.errors import ArgumentError

__all__ = [
    "FragmentSampler",
    "FullScanSampler",
    "Sampler",
    "ShardedBatchSampler",
    "ShardedFixedBatchSampler",
    "ShardedFragmentSampler",
    "maybe_sample",
    "reservoir_sampling",
]

T = TypeVar("T")
Columns = list[str] | dict[str, str] | None
_RESERVOIR = 256
"""The number of batches that a filtered random order waits in; larger is more random, and takes more memory."""


def maybe_sample(
    dataset: str | Path | LanceDataset,
    n: int,
    columns: list[str] | dict[str, str] | str,
    batch_size: int = 10240,
    max_takes: int = 2048,
    filt: str | None = None,
) -> Generator[pa.RecordBatch, None, None]:
    """Yield ``n`` rows chosen at random, in batches of ``batch_size``; all rows if there are no more.

    Of more than ``max_takes`` rows, that many runs of neighbours are read, one in each part of the table, in
    order.  ``filt``: a condition in SQL; the rows are chosen among those that pass, whose ids are held in
    memory, and pass in any order.

    >>> import pennon, pyarrow as pa
    >>> from pennon.sampler import maybe_sample
    >>> ds = pennon.write_dataset(pa.table({"id": range(100)}), "memory://docs/sample.lance")
    >>> [batch.num_rows for batch in maybe_sample(ds, 30, "id", batch_size=20)]
    [20, 10]
    """
    table = open_dataset(dataset) if isinstance(dataset, (str, Path)) else dataset
    chosen: Columns = [columns] if isinstance(columns, str) else columns
    if n < 0 or batch_size < 1 or max_takes < 1:
        message = f"n is 0 or more, batch_size and max_takes are 1 or more, got {n}, {batch_size}, {max_takes}"
        raise ArgumentError(message)
    rows = table.count_rows()
    if n >= rows:
        yield from table.to_batches(columns=chosen, batch_size=batch_size, filter=filt)
    elif filt is not None:
        ids = table.to_table(columns=[], filter=filt, with_row_id=True)["_rowid"].to_numpy()
        picked = np.random.default_rng().permutation(ids)[:n]
        take = partial(table._take_rows, columns=chosen)  # noqa: SLF001 - pylance's name
        yield from _taken(take, picked, batch_size)
    else:
        yield from _taken(
            partial(table.take, columns=chosen), _rows(rows, n, max_takes), batch_size
        )


def _rows(rows: int, n: int, max_takes: int) -> Any:
    """Return ``n`` of ``rows`` row numbers: any, or one run in each of ``max_takes`` equal parts."""
    rng = np.random.default_rng()
    if n <= max_takes:
        return rng.choice(rows, n, replace=False)
    chosen = np.arange(max_takes + 1) * n // max_takes  # so many before each run
    borders = chosen * rows // n
    lengths = np.diff(chosen)
    starts = borders[:-1] + rng.integers(0, np.diff(borders) - lengths + 1)
    return np.repeat(starts - chosen[:-1], lengths) + np.arange(n)


def _taken(take: Any, rows: Any, batch_size: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, len(rows), batch_size):
        yield from take(rows[first : first + batch_size]).combine_chunks().to_batches()


def reservoir_sampling(stream: Iterable[T], k: int) -> list[T]:
    """Return up to ``k`` items of a stream, each as likely as any other.

    >>> from pennon.sampler import reservoir_sampling
    >>> len(reservoir_sampling(range(100), 7))
    7
    """
    rng = random.Random()  # noqa: S311 - no secret
    chosen: list[T] = []
    for number, item in enumerate(stream):
        if len(chosen) < k:
            chosen.append(item)
        elif (place := rng.randint(0, number)) < k:
            chosen[place] = item
    return chosen


class Sampler(ABC):
    """An order in which the batches of a table are read: a function from a table to batches.

    A subclass implements ``__call__``.
    """

    @abstractmethod
    def __call__(
        self,
        dataset: LanceDataset,
        *args: Any,
        batch_size: int = 128,
        columns: Columns = None,
        filter: str | None = None,
        batch_readahead: int = 16,
        with_row_id: bool = False,
        **kwargs: Any,
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield batches of the table."""


class FragmentSampler(Sampler):
    """An order of fragments; a subclass implements `iter_fragments`."""

    def __call__(
        self,
        dataset: LanceDataset,
        *args: Any,
        batch_size: int = 128,
        columns: Columns = None,
        filter: str | None = None,
        batch_readahead: int = 16,
        with_row_id: bool = False,
        **kwargs: Any,
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the batches of the fragments, in their order."""
        scanner = dataset.scanner(
            columns=columns,
            filter=filter,
            batch_size=batch_size,
            batch_readahead=batch_readahead,
            with_row_id=with_row_id,
            fragments=list(self.iter_fragments(dataset, *args, **kwargs)),
        )
        yield from scanner.to_batches()

    @abstractmethod
    def iter_fragments(
        self, dataset: LanceDataset, *args: Any, **kwargs: Any
    ) -> Generator[LanceFragment, None, None]:
        """Yield fragments of the table."""


class FullScanSampler(FragmentSampler):
    """All fragments in their order."""

    def iter_fragments(
        self, dataset: LanceDataset, *args: Any, **kwargs: Any
    ) -> Generator[LanceFragment, None, None]:
        """Yield all fragments."""
        del args, kwargs
        yield from dataset.get_fragments()


class _Shard:
    """One of several processes, with a seed for each epoch."""

    def __init__(self, rank: int, world_size: int, randomize: bool = False, seed: int = 0) -> None:
        if not 0 <= rank < world_size:
            message = f"rank is at least 0 and below world_size, got {rank} of {world_size}"
            raise ArgumentError(message)
        self._rank = rank
        self._world_size = world_size
        self._randomize = randomize
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch: with ``randomize``, each has an order of its own."""
        self._epoch = epoch

    @classmethod
    def from_torch(cls, randomize: bool = False, seed: int = 0) -> Self:
        """Return the part of this process in ``torch.distributed``."""
        rank, world_size = _place_in_torch()
        return cls(rank, world_size, randomize, seed)

    def _random(self) -> random.Random:
        return random.Random(self._seed + self._epoch)  # noqa: S311 - no secret


class ShardedFragmentSampler(_Shard, FragmentSampler):
    """Every ``world_size``-th fragment, from number ``rank`` on.

    ``randomize``: fragments are shuffled first, by the sum of seed and epoch, the same for all ranks.

    >>> import pennon, pyarrow as pa
    >>> from pennon.sampler import ShardedFragmentSampler
    >>> rows = pa.table({"id": range(6)})
    >>> ds = pennon.write_dataset(rows, "memory://docs/shard.lance", max_rows_per_file=2)
    >>> [batch["id"].to_pylist() for batch in ShardedFragmentSampler(0, 2)(ds)]
    [[0, 1], [4, 5]]
    """

    def iter_fragments(
        self, dataset: LanceDataset, *args: Any, **kwargs: Any
    ) -> Generator[LanceFragment, None, None]:
        """Yield the fragments of this rank."""
        del args, kwargs
        fragments = dataset.get_fragments()
        if self._randomize:
            self._random().shuffle(fragments)
        yield from fragments[self._rank :: self._world_size]


class ShardedBatchSampler(_Shard, Sampler):
    """Every ``world_size``-th batch of rows, from number ``rank`` on.

    ``randomize``: the batches of a rank are shuffled by the sum of seed and epoch.  With a filter, every
    ``world_size``-th row that passes belongs to a rank, each rank reads all of them, and a random order is
    one within 256 batches.

    >>> import pennon, pyarrow as pa
    >>> from pennon.sampler import ShardedBatchSampler
    >>> ds = pennon.write_dataset(pa.table({"id": range(7)}), "memory://docs/batches.lance")
    >>> [batch["id"].to_pylist() for batch in ShardedBatchSampler(0, 2)(ds, batch_size=2)]
    [[0, 1], [4, 5]]
    """

    def __call__(
        self,
        dataset: LanceDataset,
        *args: Any,
        batch_size: int = 128,
        columns: Columns = None,
        filter: str | None = None,
        batch_readahead: int = 16,
        with_row_id: bool | None = None,
        **kwargs: Any,
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the batches of this rank; row ids are not added."""
        del args, kwargs, with_row_id
        if batch_size < 1:
            message = f"batch_size is 1 or more, got {batch_size}"
            raise ArgumentError(message)
        if filter is None:
            return self._all(dataset, batch_size, columns, batch_readahead)
        return self._filtered(dataset, batch_size, columns, filter)

    def _all(
        self, dataset: LanceDataset, batch_size: int, columns: Columns, read_ahead: int
    ) -> Generator[pa.RecordBatch, None, None]:
        rows = dataset.count_rows()
        starts = list(range(self._rank * batch_size, rows, self._world_size * batch_size))
        if self._randomize:
            self._random().shuffle(starts)

        def read(start: int) -> list[pa.RecordBatch]:
            wanted = np.arange(start, min(start + batch_size, rows))
            table = dataset.take(wanted, columns).combine_chunks()
            batches: list[pa.RecordBatch] = table.to_batches()
            return batches

        for batches in map_in_order(read, starts, lambda _: 1, max(read_ahead, 1)):
            yield from batches

    def _filtered(
        self, dataset: LanceDataset, batch_size: int, columns: Columns, filter: str
    ) -> Generator[pa.RecordBatch, None, None]:
        found = _every(
            dataset.scanner(columns=columns, filter=filter).to_batches(),
            self._rank,
            self._world_size,
        )
        batches = _in_batches(found, batch_size)
        return _shuffled(batches, self._random()) if self._randomize else batches


class ShardedFixedBatchSampler(ShardedBatchSampler):
    """Row numbers of a table of known length, in batches: each rank has rows that follow one another.

    Iterating yields lists of row numbers, as torch's ``batch_sampler`` does.

    >>> from pennon.sampler import ShardedFixedBatchSampler
    >>> list(ShardedFixedBatchSampler(1, 2, batch_size=2, total_num_rows=7))
    [[4, 5], [6]]
    """

    def __init__(
        self,
        rank: int,
        world_size: int,
        randomize: bool = False,
        seed: int = 0,
        batch_size: int = 0,
        total_num_rows: int = 0,
    ) -> None:
        super().__init__(rank, world_size, randomize, seed)
        if total_num_rows < 0 or batch_size < (1 if total_num_rows else 0):
            message = f"batch_size is 1 or more and total_num_rows 0 or more, got {batch_size} and {total_num_rows}"
            raise ArgumentError(message)
        self._batch_size = batch_size
        self._total_num_rows = total_num_rows

    def __len__(self) -> int:
        """Return the number of batches of a full rank."""
        if not self._total_num_rows:
            return 0
        return math.ceil(self._rows_of_a_rank / self._batch_size)

    def __iter__(self) -> Generator[list[int], None, None]:
        first = self._rank * self._rows_of_a_rank
        end = min(first + self._rows_of_a_rank, self._total_num_rows)
        starts = list(range(first, end, max(self._batch_size, 1)))
        if self._randomize:
            self._random().shuffle(starts)
        for start in starts:
            yield list(range(start, min(start + self._batch_size, end)))

    @property
    def _rows_of_a_rank(self) -> int:
        return math.ceil(self._total_num_rows / self._world_size)

    @classmethod
    def from_torch(  # type: ignore[override]
        cls, batch_size: int, total_num_rows: int, randomize: bool = False, seed: int = 0
    ) -> Self:
        """Return the part of this process in ``torch.distributed``."""
        rank, world_size = _place_in_torch()
        return cls(rank, world_size, randomize, seed, batch_size, total_num_rows)


def _place_in_torch() -> tuple[int, int]:
    """Return rank and world size of this process in ``torch.distributed``."""
    distributed = import_module("torch.distributed")
    return distributed.get_rank(), distributed.get_world_size()


def _every(batches: Iterable[pa.RecordBatch], first: int, step: int) -> Iterator[pa.RecordBatch]:
    """Yield every ``step``-th row of a stream, from row ``first`` on."""
    skip = first
    for batch in batches:
        rows = np.arange(skip, batch.num_rows, step)
        skip = (skip - batch.num_rows) % step if skip < batch.num_rows else skip - batch.num_rows
        if len(rows):
            yield batch.take(pa.array(rows))


def _in_batches(
    batches: Iterable[pa.RecordBatch], size: int
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of a stream in batches of one size; the last is smaller."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows < size:
            continue
        table = pa.Table.from_batches(waiting).combine_chunks()
        whole = rows - rows % size
        for start in range(0, whole, size):
            yield table.slice(start, size).to_batches()[0]
        waiting, rows = table.slice(whole).to_batches(), rows - whole
    if rows:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def _shuffled(items: Iterable[T], rng: random.Random) -> Generator[T, None, None]:
    """Yield items in an order that is random within the last `_RESERVOIR` of them."""
    numbers = count()
    stream = iter(items)
    waiting = [(rng.random(), next(numbers), item) for item in islice(stream, _RESERVOIR)]
    heapq.heapify(waiting)
    for item in stream:
        yield heapq.heappushpop(waiting, (rng.random(), next(numbers), item))[2]
    rng.shuffle(waiting)
    yield from (item for _, _, item in waiting)
