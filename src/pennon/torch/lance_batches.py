"""An iterable dataset of whole batches, for ``torch.utils.data.DataLoader(data, batch_size=None)``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from multiprocessing import RawArray
from multiprocessing.context import get_spawning_popen
from typing import Any

import torch.distributed
from torch.utils.data import IterableDataset, get_worker_info

from pennon.torch.tensors import to_tensors as default_to_tensors
from pennon.torch.worker_batch import in_worker
from pennon.training import Batches
from pennon.training.table_rows import Columns, Tables


class LanceBatches(IterableDataset[Any]):
    """Batches of tensors in a shuffled order, for any number of ranks and workers.

    Each item is a whole batch, a dict of tensors and lists (`to_tensors`): give the DataLoader ``batch_size=None``, and
    ``collate_fn=pennon.torch.collate``, which leaves it as it is.  Batch k of an epoch holds the same rows for every
    number of ranks and workers.

    >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
    >>> data = pennon.torch.LanceBatches(uri, batch_size=5, shuffle=False)
    >>> options = {"batch_size": None, "collate_fn": pennon.torch.collate}
    >>> loader = torch.utils.data.DataLoader(data, num_workers=2, **options)
    >>> [batch["id"].tolist() for batch in loader]
    [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    """

    def __init__(
        self,
        tables: Tables,
        *,
        columns: Columns = None,
        filter: str | None = None,
        batch_size: int = 256,
        seed: int = 0,
        shuffle: bool = True,
        rank: int | None = None,
        world_size: int | None = None,
        drop_last: bool = True,
        weights: Sequence[float] | None = None,
        to_tensors: Callable[[Any], Any] | None = None,
        collate: Callable[[Any], Any] | None = None,
        block_rows: int | None = None,
        window_blocks: int = 1,
        prefetch: int = 2,
        version: int | str | None = None,
        storage_options: dict[str, str] | None = None,
    ) -> None:
        """Open the tables and pin their versions; the arguments of `pennon.training.Batches`, and these.

        ``rank``, ``world_size``: by default those of ``torch.distributed``, or of torchrun's variables RANK and
        WORLD_SIZE, or one process.  ``to_tensors``: a function of a `pyarrow.RecordBatch`, in place of `pennon.torch.to_tensors`.
        ``collate``: a function of what that returns.  Both run on the threads that read ahead.
        """
        super().__init__()
        rank, world_size = _place_among_ranks(rank, world_size)
        self._batches = Batches(
            tables,
            columns=columns,
            filter=filter,
            batch_size=batch_size,
            seed=seed,
            shuffle=shuffle,
            rank=rank,
            world_size=world_size,
            drop_last=drop_last,
            weights=weights,
            block_rows=block_rows,
            window_blocks=window_blocks,
            prefetch=prefetch,
            version=version,
            storage_options=storage_options,
        )
        self._convert = _Conversion(to_tensors or default_to_tensors, collate)
        self._start = _SharedStart()
        self._is_resumed_here = False

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator over this worker's batches of the epoch, from the position on."""
        worker = get_worker_info()
        if worker is not None:
            self._enter_worker(worker.id, worker.num_workers)
            if not self._is_resumed_here:
                self._batches.move_to(*self._start.get())
            self._is_resumed_here = False
        return self._batches.iterate(self._convert)

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch, the same for every rank."""
        return len(self._batches)

    @property
    def batches(self) -> Batches:
        """Return the batches as Arrow has them.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> pennon.torch.LanceBatches(uri).batches.rows
        10
        """
        return self._batches

    @property
    def epoch(self) -> int:
        """Return the epoch that the next iteration reads.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> pennon.torch.LanceBatches(uri).epoch
        0
        """
        return self._batches.epoch

    def set_epoch(self, epoch: int) -> None:
        """Turn to an epoch, which has an order of its own; workers that persist turn to it, too.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> data = pennon.torch.LanceBatches(uri)
        >>> data.set_epoch(1)
        >>> data.epoch
        1
        """
        self._batches.set_epoch(epoch)
        self._start.set(self._batches.epoch, self._batches.position)

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Return the place in the epoch, as a dict of numbers that JSON can hold.

        ``batches``: how many batches of this iteration the program has used.  It is needed with ``num_workers``, for a
        DataLoader does not say how far its workers are; torchdata's StatefulDataLoader calls this in each worker.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> pennon.torch.LanceBatches(uri, batch_size=4).state_dict(batches=2)["position"]
        8
        """
        return self._batches.state_dict(batches)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on at the place of a state; the number of ranks, of workers and the batch size may be others.

        Raises ArgumentError if the state is of other tables or another filter.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> data = pennon.torch.LanceBatches(uri, batch_size=5)
        >>> data.load_state_dict(data.state_dict(batches=1))
        >>> len(list(data))
        1
        """
        worker = get_worker_info()
        if worker is not None:
            self._enter_worker(worker.id, worker.num_workers)
        self._batches.load_state_dict(state)
        if worker is None:
            self._start.set(self._batches.epoch, self._batches.position)
        self._is_resumed_here = worker is not None

    def _enter_worker(self, worker: int, workers: int) -> None:
        share = replace(self._batches.share, worker=worker, workers=workers)
        self._batches.take_share(share)


class _Conversion:
    """The functions that make an item of an Arrow batch; it pickles if they do."""

    def __init__(
        self, to_tensors: Callable[[Any], Any], collate: Callable[[Any], Any] | None
    ) -> None:
        self._to_tensors, self._collate = to_tensors, collate

    def __call__(self, batch: Any) -> Any:
        made = self._to_tensors(batch)
        return in_worker(made if self._collate is None else self._collate(made))


class _SharedStart:
    """The epoch and position that workers begin with, in memory that they share with the process that made them.

    The memory has no name, so nothing remains of it when all processes are killed.  A pickle that starts no worker
    holds the numbers alone.
    """

    def __init__(self, epoch: int = 0, position: int = 0) -> None:
        self._numbers: Any = RawArray("q", [epoch, position])

    def get(self) -> tuple[int, int]:
        return self._numbers[0], self._numbers[1]

    def set(self, epoch: int, position: int) -> None:
        self._numbers[0], self._numbers[1] = epoch, position

    def __reduce__(self) -> tuple[Callable[..., _SharedStart], tuple[Any, ...]]:
        if get_spawning_popen() is None:
            return _SharedStart, self.get()
        return _of_numbers, (self._numbers,)


def _of_numbers(numbers: Any) -> _SharedStart:
    made = _SharedStart.__new__(_SharedStart)
    made._numbers = numbers  # noqa: SLF001 - the way back from a pickle
    return made


def _place_among_ranks(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return the rank and world size: as given, of torch.distributed, of torchrun's variables, or of one process."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        found = torch.distributed.get_rank(), torch.distributed.get_world_size()
    else:
        found = _number("RANK", 0), _number("WORLD_SIZE", 1)
    if rank is None and world_size is None:
        return found
    if world_size is None:
        world_size = found[1]
    if rank is None:
        rank = found[0] if world_size == found[1] else 0
    return rank, world_size


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else default
