"""Names of ``lance.torch.data``: PyTorch datasets over a table."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import pennon
from pennon.as_lance.cache import CachedDataset
from pennon.as_lance.dependencies import torch
from pennon.as_lance.hf import HuggingFaceConverter
from pennon.as_lance.torch.dist import get_global_rank, get_global_world_size
from pennon.as_lance.torch.tensors import to_tensor
from pennon.dataset import LanceDataset as Table
from pennon.errors import ArgumentError
from pennon.sampler import (
    FullScanSampler,
    Sampler,
    ShardedBatchSampler,
    ShardedFragmentSampler,
    maybe_sample,
)

__all__ = ["LanceDataset", "SafeLanceDataset", "TensorDataset", "get_safe_loader"]

_DATA = torch.utils.data


class LanceDataset(_DATA.IterableDataset):  # type: ignore[misc, name-defined]
    """An iterable dataset: batches of a table as tensors, shared out among ranks and workers.

    ``dataset``: a table or its place, opened with ``dataset_options``.  ``samples``: so many rows, chosen at
    random.  ``cache``: True, or a folder: the first pass keeps its batches in a file for the next.
    ``shard_granularity``: whether ranks get fragments (the default) or batches; ``sampler``: another order.
    ``auto_detect_rank``: rank and world size are those of ``torch.distributed`` and the DataLoader's worker.
    ``to_tensor_fn``: called with a batch, and the keywords ``hf_converter`` and ``use_blob_api``; None
    leaves Arrow batches.  Blobs are in a batch as a list of `pennon.BlobFile`.
    """

    def __init__(
        self,
        dataset: Table | str | Path,
        batch_size: int,
        *_: Any,
        dataset_options: dict[str, Any] | None = None,
        columns: list[str] | dict[str, str] | None = None,
        filter: str | None = None,
        samples: int | None = 0,
        cache: str | bool | None = None,
        with_row_id: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        shard_granularity: Literal["fragment", "batch"] | None = None,
        batch_readahead: int = 16,
        to_tensor_fn: Callable[..., Any] | None = to_tensor,
        sampler: Sampler | None = None,
        auto_detect_rank: bool = True,
        **__: Any,
    ) -> None:
        super().__init__()
        if shard_granularity not in (None, "fragment", "batch"):
            message = f"shard_granularity is 'fragment' or 'batch', got {shard_granularity!r}"
            raise ArgumentError(message)
        if rank is not None and world_size is not None:
            warnings.warn("rank and world_size are deprecated", DeprecationWarning, stacklevel=2)
        if isinstance(dataset, (str, Path)):
            dataset = pennon.dataset(dataset, **dataset_options or {})
        self.dataset = dataset
        self.batch_size = batch_size
        self.columns = columns
        self.filter = filter
        self.samples = samples
        self.cache = cache
        self.cached_ds: CachedDataset | None = None
        self.rank = rank
        self.world_size = world_size
        self.shard_granularity = shard_granularity
        self.batch_readahead = batch_readahead
        self.sampler = sampler
        self._to_tensor_fn = to_tensor_fn
        self._auto_detect_rank = auto_detect_rank
        self._blobs = [name for name in columns or dataset.schema.names if self._is_blob(name)]
        self.with_row_id = with_row_id or bool(self._blobs)
        info = (dataset.schema.metadata or {}).get(b"huggingface")
        self._hf_converter = None if info is None else HuggingFaceConverter(json.loads(info))

    def __repr__(self) -> str:
        return f"LanceTorchDataset({self.dataset.uri}, size={self.samples})"

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the columns."""
        whole = self.dataset.schema
        if not self.columns:
            return whole
        return pa.schema([whole.field(name) for name in self.columns], whole.metadata)

    def __iter__(self) -> Iterator[Any]:
        for batch in self._stream():
            shown: Any = self._with_blobs(batch) if self._blobs else batch
            if self._to_tensor_fn is not None:
                has_blobs = bool(self._blobs)
                shown = self._to_tensor_fn(
                    shown, hf_converter=self._hf_converter, use_blob_api=has_blobs
                )
            yield shown

    def _stream(self) -> Iterable[pa.RecordBatch]:
        """Return the Arrow batches of one pass."""
        if self.cached_ds is not None:
            return self.cached_ds
        stream = _joined(self._read(), self.batch_size)
        if self.cache:
            self.cached_ds = CachedDataset(stream, self.cache)
            return self.cached_ds
        return stream

    def _read(self) -> Iterator[pa.RecordBatch]:
        columns: Any = self.columns or self.dataset.schema.names
        if isinstance(columns, list):
            columns = [name for name in columns if name not in self._blobs]
        if self.samples:
            return maybe_sample(
                self.dataset,
                self.samples,
                columns=columns,
                batch_size=self.batch_size,
                filt=self.filter,
            )
        return self._sampler()(
            self.dataset,
            columns=columns,
            filter=self.filter,
            batch_size=self.batch_size,
            with_row_id=self.with_row_id,
            batch_readahead=self.batch_readahead,
        )

    def _sampler(self) -> Sampler:
        if self.sampler is not None:
            return self.sampler
        rank, world_size = self.rank, self.world_size
        if self._auto_detect_rank:
            rank = get_global_rank() if rank is None else rank
            world_size = get_global_world_size() if world_size is None else world_size
        if rank is None or world_size is None:
            return FullScanSampler()
        is_by_batch = self.shard_granularity == "batch"
        return (ShardedBatchSampler if is_by_batch else ShardedFragmentSampler)(rank, world_size)

    def _with_blobs(self, batch: pa.RecordBatch) -> dict[str, Any]:
        """Return a batch as a dict, with the files of its blobs."""
        shown: dict[str, Any] = {name: batch[name] for name in batch.column_names}
        ids = batch["_rowid"].to_pylist()
        return shown | {name: self.dataset.take_blobs(name, ids=ids) for name in self._blobs}

    def _is_blob(self, name: str) -> bool:
        schema = self.dataset.schema
        if name not in schema.names:
            return False
        metadata = schema.field(name).metadata or {}
        return metadata.get(b"lance-encoding:blob") == b"true"


def _joined(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches that follow one another as one, while they have no more than ``rows`` rows."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if waiting and sum(each.num_rows for each in waiting) + batch.num_rows > rows:
            yield _one(waiting)
            waiting = []
        waiting.append(batch)
    if waiting:
        yield _one(waiting)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


class SafeLanceDataset(_DATA.Dataset):  # type: ignore[misc, name-defined]
    """A map-style dataset: a row is a dict.  Each process opens the table when it first reads.

    The version is that of the first opening, so all workers read the same rows: pylance's workers each read
    the newest.
    """

    def __init__(
        self, uri: str | Path, *, dataset_options: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        table = pennon.dataset(uri, **dataset_options or {})
        self.uri = uri
        self.dataset_options = {**(dataset_options or {}), "version": table.version}
        self._len = table.count_rows()
        self._ds: Table | None = None

    def __len__(self) -> int:
        return self._len

    def __getitem__(self, idx: int) -> dict[str, Any]:
        return self.__getitems__([idx])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Return rows by their numbers, in one read."""
        if self._ds is None:
            self._ds = pennon.dataset(self.uri, **self.dataset_options)
        rows: list[dict[str, Any]] = self._ds.take(indices).to_pylist()
        return rows

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ds": None}


class TensorDataset(_DATA.Dataset):  # type: ignore[misc, name-defined]
    """A map-style dataset: the rows of a tensor or numpy array of two dimensions, in batches."""

    def __init__(self, data: Any, batch_size: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._data = torch.as_tensor(data)
        self._batch_size = batch_size

    def __repr__(self) -> str:
        return "LanceTensorDataset"

    def __len__(self) -> int:
        rows: int = self._data.shape[0]
        return math.ceil(rows / self._batch_size)

    def __getitem__(self, idx: int) -> Any:
        if idx >= len(self):
            raise IndexError(idx)
        return self._data[idx * self._batch_size : (idx + 1) * self._batch_size]


def get_safe_loader(dataset: Any, batch_size: int = 32, num_workers: int = 4, **kwargs: Any) -> Any:
    """Return a DataLoader whose workers are started anew (``spawn``) and stay for the next epochs.

    ``kwargs``: those of ``torch.utils.data.DataLoader``, which come first.
    """
    chosen = {
        "batch_size": batch_size,
        "num_workers": num_workers,
        "persistent_workers": num_workers > 0,
        "multiprocessing_context": "spawn" if num_workers > 0 else None,
        **kwargs,
    }
    return _DATA.DataLoader(dataset, **chosen)
