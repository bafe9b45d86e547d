"""Names of ``lance.torch.distance``: distances between the rows of two tensors.

A shape is (rows, dimension); distances are float32 or as precise as the tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pennon.as_lance.dependencies import torch

_ROWS = 4096
"""The number of rows that functions which return only the nearest rows compare at a time."""


def pairwise_cosine(x: Any, y: Any, *, y2: Any = None, device: Any = None) -> Any:
    """Return the cosine distance of each row of ``x`` to each row of ``y``: shape (rows of x, rows of y).

    ``y2``: the lengths of the rows of ``y``, if they are known.
    """
    x, y = _on(device, x, y)
    lengths = torch.linalg.norm(y, dim=1) if y2 is None else y2.reshape(-1)
    products = x @ y.T
    return 1 - products / torch.linalg.norm(x, dim=1).reshape(-1, 1) / lengths.reshape(1, -1)


def pairwise_l2(x: Any, y: Any, y2: Any = None) -> Any:
    """Return the squared distance of each row of ``x`` to each row of ``y``: shape (rows of x, rows of y).

    ``y2``: the squared lengths of the rows of ``y``, if they are known.
    """
    squares = (y * y).sum(dim=1) if y2 is None else y2.reshape(-1)
    lengths = (x * x).sum(dim=1)
    return lengths.reshape(-1, 1) + squares.reshape(1, -1) - 2 * (x @ y.T)


def cosine_distance(vectors: Any, centroids: Any, split_size: int | None = None) -> tuple[Any, Any]:
    """Return for each vector the number of the nearest centroid by cosine, and its distance."""
    return _nearest(pairwise_cosine, vectors, centroids, split_size)


def l2_distance(
    vectors: Any, centroids: Any, split_size: int | None = None, y2: Any = None
) -> tuple[Any, Any]:
    """Return for each vector the number of the nearest centroid, and its squared distance.

    A vector with NaN has centroid -1 and distance NaN.
    """
    return _nearest(partial(pairwise_l2, y2=y2), vectors, centroids, split_size)


def dot_distance(vectors: Any, centroids: Any, split_size: int | None = None) -> tuple[Any, Any]:
    """Return for each vector the number of the centroid of the largest dot product, and 1 - product."""
    return _nearest(lambda x, y: 1 - x @ y.T, vectors, centroids, split_size)


def _nearest(
    pairwise: Callable[[Any, Any], Any], vectors: Any, centroids: Any, split_size: int | None
) -> tuple[Any, Any]:
    """Return the nearest centroid of each vector, and its distance, some rows at a time."""
    numbers, distances = [], []
    for rows in torch.split(vectors, split_size or _ROWS):
        found = torch.min(pairwise(rows, centroids.to(rows.device)), dim=1)
        is_nan = torch.isnan(found.values)
        numbers.append(torch.where(is_nan, -1, found.indices))
        distances.append(found.values)
    return torch.cat(numbers), torch.cat(distances)


def _on(device: Any, *tensors: Any) -> tuple[Any, ...]:
    return tensors if device is None else tuple(each.to(device) for each in tensors)
