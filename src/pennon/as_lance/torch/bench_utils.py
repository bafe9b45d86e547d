"""Names of ``lance.torch.bench_utils``: exact nearest neighbours, to measure the recall of a search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.as_lance.dependencies import torch
from pennon.as_lance.torch import preferred_device
from pennon.as_lance.torch.data import LanceDataset as TorchDataset
from pennon.as_lance.torch.distance import pairwise_cosine, pairwise_l2
from pennon.dataset.lance_dataset import LanceDataset
from pennon.errors import ArgumentError

__all__ = ["ground_truth", "infer_vector_column", "recall", "sort_tensors"]

_DISTANCES: dict[str, Callable[[Any, Any], Any]] = {"l2": pairwise_l2, "cosine": pairwise_cosine}


def sort_tensors(source: Any, other: Any, k: int) -> tuple[Any, Any]:
    """Return the ``k`` smallest values of each row of ``source``, in order, and the values of ``other`` there."""
    values, places = torch.sort(source, dim=1)
    return values[:, :k], torch.gather(other, 1, places[:, :k])


def ground_truth(
    ds: LanceDataset,
    column: str,
    query: Any,
    metric_type: str = "L2",
    k: int = 100,
    batch_size: int = 10240,
    device: str | None = None,
) -> Any:
    """Return the row ids of the nearest rows of each query, found by comparing all: shape (queries, k).

    Raises ArgumentError for a metric that is neither "L2" nor "cosine".
    """
    distance = _DISTANCES.get(metric_type.lower())
    if distance is None:
        message = f"ground_truth knows the metrics L2 and cosine, not {metric_type!r}"
        raise ArgumentError(message)
    place = preferred_device(device)
    queries = torch.as_tensor(query).to(place)
    nearest = torch.empty((len(queries), 0), device=place)
    ids = torch.empty((len(queries), 0), dtype=torch.int64, device=place)
    for batch in TorchDataset(ds, batch_size, columns=[column], with_row_id=True):
        found = distance(queries, batch[column].to(place))
        rows = batch["_rowid"].to(place).expand(len(queries), -1)
        nearest, ids = sort_tensors(torch.cat([nearest, found], 1), torch.cat([ids, rows], 1), k)
    return ids


def recall(expected: npt.NDArray[Any], actual: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return for each query the share of expected rows that were found; both have the shape (queries, k)."""
    if expected.shape != actual.shape:
        message = f"both have one shape, got {expected.shape} and {actual.shape}"
        raise ArgumentError(message)
    pairs = zip(expected, actual, strict=True)
    return np.array([np.isin(wanted, found).mean() for wanted, found in pairs])


def infer_vector_column(ds: LanceDataset) -> str | None:
    """Return the name of the first column of vectors; None if there is none."""
    for field in ds.schema:
        is_tensor = isinstance(field.type, pa.FixedShapeTensorType) and len(field.type.shape) == 1
        if is_tensor or pa.types.is_fixed_size_list(field.type):
            return str(field.name)
    return None
