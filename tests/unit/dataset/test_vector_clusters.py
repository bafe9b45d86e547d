"""Clusters of vectors: results, inputs and refusals of `KMeans`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.errors import ArgumentError
from pennon.util import KMeans

MEANS = np.eye(4, 6, dtype=np.float32) * 50


def vectors(rows: int = 400, seed: int = 5) -> Any:
    """Return vectors near to four means in turn."""
    noise = np.random.default_rng(seed).normal(size=(rows, 6)).astype(np.float32)
    return MEANS[np.arange(rows) % 4] + noise


def lists(matrix: Any) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(matrix.ravel(), matrix.shape[1])


def found(model: KMeans) -> Any:
    assert model.centroids is not None
    return model.centroids.to_numpy_ndarray()


@pytest.mark.parametrize("metric", ["l2", "euclidean", "dot", "cosine"])
def test_rows_of_one_mean_are_one_cluster(metric: str) -> None:
    rows = vectors()
    model = KMeans(4, metric_type=metric)
    assert model.centroids is None
    model.fit(rows)
    clusters = model.predict(rows)
    assert clusters.type == pa.uint32()
    assert len({tuple(clusters[at::4].unique().to_pylist()) for at in range(4)}) == 4
    assert all(len(clusters[at::4].unique()) == 1 for at in range(4))


def test_centroids_are_the_means_of_their_vectors() -> None:
    rows = vectors()
    model = KMeans(4)
    model.fit(rows)
    clusters = model.predict(rows).to_numpy()
    for number, centroid in enumerate(found(model)):
        np.testing.assert_allclose(centroid, rows[clusters == number].mean(axis=0), rtol=1e-5)


def test_numpy_lists_and_tensors_are_the_same() -> None:
    rows = vectors()
    models = [KMeans(4) for _ in range(3)]
    for model, data in zip(
        models,
        [rows, lists(rows), pa.FixedShapeTensorArray.from_numpy_ndarray(rows)],
        strict=True,
    ):
        model.fit(data)
        assert np.array_equal(found(model), found(models[0]))


def test_kmeans_starts_from_centroids_of_another_model() -> None:
    rows = vectors()
    first = KMeans(4)
    first.fit(rows)
    second = KMeans(4, centroids=first.centroids)
    assert second.predict(rows) == first.predict(rows)
    second.fit(vectors(seed=6) + 1)
    moved = found(second)
    second.fit(vectors(seed=6) + 1)
    assert np.array_equal(found(second), moved)
    assert np.allclose(moved, found(first) + 1, atol=0.5)


def test_kmeans_assigns_no_cluster_to_null_and_nan_vectors() -> None:
    rows = vectors()
    rows[3, 2], rows[8, 0] = np.nan, np.inf
    values = [None, *map(list, rows)]
    model = KMeans(4)
    model.fit(pa.array(values, pa.list_(pa.float32(), 6)))
    assert np.isfinite(found(model)).all()
    clusters = model.predict(pa.array(values, pa.list_(pa.float32(), 6)))
    missing = np.flatnonzero(clusters.is_null().to_numpy(zero_copy_only=False))
    assert missing.tolist() == [0, 4, 9]
    assert len(model.predict(rows[:0])) == 0


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (np.zeros((9, 6)), "must be float32 type, got: float64"),
        (np.zeros(6, np.float32), "must be a 2-D array, got 1-D"),
        (np.zeros((2, 6), np.float32), "2 vectors do not make 4 clusters"),
        ([[1.0]], "must be a FixedSizeListArray, Tensor or numpy array, not list"),
        (pa.array([[1.0]], pa.list_(pa.float64(), 1)), "must be float32 type, got: double"),
        (
            pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((9, 6, 2), np.float32)),
            "must be a 1-D array, got 2-D",
        ),
    ],
)
def test_kmeans_fit_of_wrong_data_is_refused(data: Any, error: str) -> None:
    with pytest.raises(ArgumentError, match=error):
        KMeans(4).fit(data)


def test_kmeans_with_wrong_parameters_is_refused() -> None:
    with pytest.raises(ArgumentError, match="k is 0"):
        KMeans(0)
    with pytest.raises(ArgumentError, match="Invalid metric_type: hamming"):
        KMeans(2, metric_type="hamming")
    with pytest.raises(ArgumentError, match="k is 3, and there are 4 centroids"):
        KMeans(3, centroids=lists(MEANS))
    with pytest.raises(ArgumentError, match="must fit"):
        KMeans(4).predict(vectors())
    with pytest.raises(ArgumentError, match="kmean model 6 != data 2"):
        KMeans(4, centroids=lists(MEANS)).predict(np.zeros((1, 2), np.float32))
