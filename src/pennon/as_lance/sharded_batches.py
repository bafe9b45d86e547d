"""Names of ``lance._dataset.sharded_batch_iterator``: what was there before samplers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Self

import pyarrow as pa

import pennon
from pennon.as_lance.torch.dist import get_dist_rank, get_dist_world_size
from pennon.dataset import LanceDataset
from pennon.errors import ArgumentError, UnsupportedError
from pennon.sampler import ShardedBatchSampler, ShardedFragmentSampler

__all__ = ["ShardedBatchIterator"]


class ShardedBatchIterator:
    """The batches of one of several ranks: by fragments, or by batches of ``batch_size`` rows.

    Deprecated in pylance: `pennon.sampler` has the same.  Raises ArgumentError for another ``granularity``,
    UnsupportedError for row ids with ``granularity="batch"``.
    """

    def __init__(
        self,
        data: str | Path | LanceDataset,
        rank: int,
        world_size: int,
        *,
        columns: list[str] | dict[str, str] | None = None,
        batch_size: int = 10240,
        granularity: Literal["fragment", "batch"] = "fragment",
        batch_readahead: int = 8,
        with_row_id: bool = False,
    ) -> None:
        warnings.warn("ShardedBatchIterator is deprecated; use a sampler", stacklevel=2)
        if granularity not in ("fragment", "batch"):
            message = f"granularity is 'fragment' or 'batch', got {granularity!r}"
            raise ArgumentError(message)
        if with_row_id and granularity == "batch":
            message = "row ids are there with granularity='fragment' only"
            raise UnsupportedError(message)
        is_by_batch = granularity == "batch"
        self._sampler = (ShardedBatchSampler if is_by_batch else ShardedFragmentSampler)(
            rank, world_size
        )
        self._table = data if isinstance(data, LanceDataset) else pennon.dataset(data)
        self._options: dict[str, Any] = {
            "columns": columns,
            "batch_size": batch_size,
            "batch_readahead": batch_readahead,
            "with_row_id": with_row_id,
        }

    @classmethod
    def from_torch(cls, data: str | Path | LanceDataset, **options: Any) -> Self:
        """Return the part of this process in ``torch.distributed``; options as above."""
        return cls(data, get_dist_rank(), get_dist_world_size(), **options)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._sampler(self._table, **self._options)
