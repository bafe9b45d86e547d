"""Clusters of vectors (pylance's ``lance.util.KMeans``)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from pennon.errors import ArgumentError
from pennon.index.row_set import Numbers
from pennon.index.vector.kmeans import Centroids, k_means
from pennon.index.vector.metric import L2, METRICS, metric_named
from pennon.index.vector.rows import Matrix, as_array, usable

Vectors: TypeAlias = "npt.NDArray[np.float32] | pa.FixedSizeListArray | pa.FixedShapeTensorArray"
"""Vectors of float32, one a row."""

_NAMES = tuple(name for metric in METRICS if not metric.is_of_bits for name in metric.names)
_SEED = 42


class KMeans:
    """Clusters of vectors: `fit` finds their centroids, `predict` which of them a vector is nearest to.

    ``k``: how many.  ``metric_type``: ``l2`` (``euclidean`` is the same), ``dot``, or ``cosine``, which compares
    vectors by their direction alone.  ``max_iters``: rounds of `fit` at most.  ``centroids``: ``k`` of a model that
    was trained before, one a row; `fit` begins with them.  The same vectors give the same clusters.

    Raises ArgumentError for a ``k`` below 1, for another number of centroids, and for another metric.

    >>> import numpy as np
    >>> from pennon.util import KMeans
    >>> vectors = np.float32([[0, 0], [0, 1], [9, 9], [9, 8]])
    >>> model = KMeans(2)
    >>> model.fit(vectors)
    >>> first, _, third, _ = model.predict(vectors).to_pylist()
    >>> first != third
    True
    """

    def __init__(
        self, k: int, metric_type: str = "l2", max_iters: int = 50, centroids: Any = None
    ) -> None:
        metric = metric_named(metric_type)
        if metric is None or metric.is_of_bits:
            message = f"Invalid metric_type: {metric_type}; there are {', '.join(_NAMES)}"
            raise ArgumentError(message)
        if k < 1:
            message = f"k is {k}, which must be at least 1"
            raise ArgumentError(message)
        self.k = k
        self._metric = metric
        self._max_iters = max_iters
        self._start = None if centroids is None else self._given(_lists(centroids))
        self._centroids = self._start

    def _given(self, centroids: pa.FixedSizeListArray[Any]) -> Matrix:
        rows, _ = usable(centroids, _numbers(centroids), L2)
        if len(rows) != self.k:
            message = f"k is {self.k}, and there are {len(rows)} centroids: give as many as k"
            raise ArgumentError(message)
        return rows

    def __repr__(self) -> str:
        return f"lance.KMeans(k={self.k}, metric_type={self._metric})"

    @property
    def centroids(self) -> pa.FixedShapeTensorArray | None:
        """Return the centroids, one a row; None before `fit`."""
        if self._centroids is None:
            return None
        kind = pa.fixed_shape_tensor(pa.float32(), [self._centroids.shape[1]])
        found: pa.FixedShapeTensorArray = pa.ExtensionArray.from_storage(
            kind, as_array(self._centroids)
        )
        return found

    def fit(self, data: Vectors) -> None:
        """Find the centroids of vectors; NULLs, and vectors with a NaN or an infinity, are left out.

        Raises ArgumentError where there are fewer vectors than ``k``.
        """
        rows, _ = self._usable(_lists(data))
        if len(rows) < self.k:
            message = (
                f"{len(rows)} vectors do not make {self.k} clusters: give more, or a smaller k"
            )
            raise ArgumentError(message)
        _check_dimension(self._start, rows)
        trained = k_means(
            rows,
            self.k,
            seed=_SEED,
            max_iters=self._max_iters,
            metric=self._metric,
            start=self._start,
        )
        self._centroids = trained.centroids

    def predict(self, data: Vectors) -> pa.UInt32Array:
        """Return the number of the nearest centroid of each vector, NULL where there is no distance.

        Raises ArgumentError before `fit`, and for vectors of another dimension.
        """
        if self._centroids is None:
            message = "KMeans must fit (train) first"
            raise ArgumentError(message)
        lists = _lists(data)
        rows, places = self._usable(lists)
        _check_dimension(self._centroids, rows)
        near = Centroids.of(self._centroids[None], by_product=self._metric.is_product)
        found = np.zeros(len(lists), np.uint32)
        found[places] = near.nearest(rows)[0].ravel()
        missing = np.ones(len(lists), np.bool_)
        missing[places] = False
        return pa.array(found, mask=missing)

    def _usable(self, lists: pa.FixedSizeListArray[Any]) -> tuple[Matrix, Numbers]:
        return usable(lists, _numbers(lists), self._metric)


def _numbers(lists: pa.FixedSizeListArray[Any]) -> Numbers:
    return np.arange(len(lists), dtype=np.uint64)


def _check_dimension(centroids: Matrix | None, rows: Matrix) -> None:
    if centroids is not None and centroids.shape[1] != rows.shape[1]:
        message = f"Dimension mismatch: kmean model {centroids.shape[1]} != data {rows.shape[1]}"
        raise ArgumentError(message)


def _lists(data: Any) -> pa.FixedSizeListArray[Any]:
    """Return vectors as lists of float32."""
    if isinstance(data, np.ndarray):
        if data.ndim != 2:
            message = f"Numpy array must be a 2-D array, got {data.ndim}-D"
            raise ArgumentError(message)
        if data.dtype != np.float32:
            message = f"Numpy array must be float32 type, got: {data.dtype}"
            raise ArgumentError(message)
        return as_array(data)
    if isinstance(data, pa.FixedShapeTensorArray):
        if len(data.type.shape) != 1:
            message = f"Fixed shape tensor array must be a 1-D array, got {len(data.type.shape)}-D"
            raise ArgumentError(message)
        data = data.storage
    if not isinstance(data, pa.Array) or not t.is_fixed_size_list(data.type):
        message = (
            f"Data must be a FixedSizeListArray, Tensor or numpy array, not {type(data).__name__}"
        )
        raise ArgumentError(message)
    if data.type.value_type != pa.float32():
        message = f"Array must be float32 type, got: {data.type.value_type}"
        raise ArgumentError(message)
    return data
