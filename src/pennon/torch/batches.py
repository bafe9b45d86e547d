"""The batches of a table as an iterable PyTorch dataset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import torch.distributed
import torch.utils.data

from pennon.errors import ArgumentError
from pennon.torch.tensors import to_tensors as default_to_tensors
from pennon.training.batches import Batches, Tables
from pennon.training.table_rows import Columns


class LanceBatches(torch.utils.data.IterableDataset[Any]):
    """Batches of a table as tensors; for ``DataLoader(data, batch_size=None, num_workers=...)``.

    The arguments are those of `pennon.training.batches`, and ``to_tensors``: a function that makes of a
    `pyarrow.RecordBatch` what is yielded (default: `pennon.torch.to_tensors`, a dict); threads that read ahead call it.

    ``batch_size`` counts the rows of a *global* batch, which is divided over the ranks.  So batch k holds the same rows
    for any ``world_size`` and ``num_workers``, and a state saved with one can be loaded with another.  ``rank`` and
    ``world_size`` are by default those of `torch.distributed` if it is initialised, else of the variables ``RANK`` and
    ``WORLD_SIZE`` that torchrun sets.

    Call `set_epoch` before each epoch.  Persistent workers do not see it: they count their epochs from the first
    one on.  Worker processes may be forked, spawned or of a fork server.

    >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
    >>> data = pennon.torch.LanceBatches(uri, batch_size=5, shuffle=False)
    >>> [batch["id"].tolist() for batch in data]
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
        block_rows: int | None = None,
        window_blocks: int = 1,
        prefetch: int = 2,
        version: int | str | None = None,
        storage_options: dict[str, str] | None = None,
        to_tensors: Callable[[pa.RecordBatch], Any] | None = None,
    ) -> None:
        """Open the tables and pin their versions.  Raises what `pennon.training.batches` raises."""
        rank, world_size = _place(rank, world_size)
        self.batches = Batches(
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
        self._to_tensors = to_tensors or default_to_tensors
        self._iterations_of_worker = 0

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch: the same for every rank."""
        return len(self.batches)

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator of this worker's batches, from the position on to the end of the epoch."""
        if self._enter_worker():
            if self._iterations_of_worker:
                self.batches.set_epoch(self.batches.epoch + 1)
            self._iterations_of_worker += 1
        return self.batches.iterate(self._to_tensors)

    def set_epoch(self, epoch: int) -> None:
        """Turn to an epoch: each has an order of its own.  The epoch that `load_state_dict` set goes on at its place.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> data = pennon.torch.LanceBatches(uri)
        >>> data.set_epoch(3)
        """
        self.batches.set_epoch(epoch)

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Return the place in the epoch, as a dict of numbers that JSON can hold.

        ``batches``: how many batches the training loop has had of this iteration.  Give it where a DataLoader has
        workers: these iterate in processes of their own.  torchdata's StatefulDataLoader calls this in each worker.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> pennon.torch.LanceBatches(uri, batch_size=4).state_dict(batches=2)["position"]
        8
        """
        self._enter_worker()
        return self.batches.state_dict(batches)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on at the place of a state; with another ``world_size``, ``num_workers`` or ``batch_size`` if you like.

        Raises ArgumentError if the state is of other tables or another filter, NotFoundError if its version was
        cleaned up.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> data = pennon.torch.LanceBatches(uri, batch_size=5, shuffle=False)
        >>> data.load_state_dict(data.state_dict(batches=1))
        >>> [batch["id"].tolist() for batch in data]
        [[5, 6, 7, 8, 9]]
        """
        self._enter_worker()
        self.batches.load_state_dict(state)

    def _enter_worker(self) -> bool:
        """Take this worker's share of the batches; return whether this process is a worker."""
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            return False
        mine = replace(self.batches.share, worker=worker.id, workers=worker.num_workers)
        self.batches.take_share(mine)
        return True


def _place(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return the rank and the number of ranks, looked up if neither is given."""
    if (rank is None) != (world_size is None):
        message = "give both rank and world_size, or neither"
        raise ArgumentError(message)
    if rank is not None and world_size is not None:
        return rank, world_size
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    stated = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if all(text.isascii() and text.isdigit() for text in stated):
        return int(stated[0]), int(stated[1])
    return 0, 1
