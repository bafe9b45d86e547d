"""The centroids nearest to vectors, beside a plain twin."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.index.kernels.vectors.clusters import add_rows, nearest
from pennon.index.vector.kmeans import Centroids
from pennon.index.vector.rows import Matrix


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("count", [1, 15, 16, 17, 256])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 100])
def test_nearest_centroids_equal_the_twin(parts: int, count: int, rows: int) -> None:
    rng = np.random.default_rng(parts * 1000 + count)
    words = rng.normal(size=(parts, count, 5)).astype(np.float32)
    vectors = rng.normal(size=(rows, parts * 5)).astype(np.float32)
    found, scores = Centroids.of(words).nearest(vectors)
    for part in range(parts):
        rest = vectors[:, None, part * 5 : part * 5 + 5] - words[part][None]
        squares = (rest.astype(np.float64) ** 2).sum(axis=2)
        assert found[:, part].tolist() == squares.argmin(axis=1).tolist()
        shift = Centroids.of(words).shift[part * 5 : part * 5 + 5]
        own = ((vectors[:, part * 5 : part * 5 + 5] - shift) ** 2).sum(axis=1)
        assert np.allclose(2 * scores[:, part] + own, squares.min(axis=1), atol=1e-4)


def test_nearest_centroid_of_equal_or_nan_distances_is_the_first() -> None:
    words = np.zeros((1, 40, 4), np.float32)
    found, _ = Centroids.of(words).nearest(np.ones((3, 4), np.float32))
    assert found.ravel().tolist() == [0, 0, 0]
    found, _ = Centroids.of(words, by_product=True).nearest(np.full((2, 4), np.nan, np.float32))
    assert found.ravel().tolist() == [0, 0]


def test_products_prefer_the_longest() -> None:
    words = np.array([[[1, 0], [3, 0], [0, 2]]], np.float32)
    found, _ = Centroids.of(words, by_product=True).nearest(np.array([[1, 1], [0, 1]], np.float32))
    assert found.ravel().tolist() == [1, 2]


def test_far_from_zero_is_as_exact() -> None:
    rng = np.random.default_rng(4)
    words = (rng.normal(size=(1, 50, 8)) + 10_000).astype(np.float32)
    vectors = (rng.normal(size=(200, 8)) + 10_000).astype(np.float32)
    found, _ = Centroids.of(words).nearest(vectors)
    squares = ((vectors[:, None].astype(np.float64) - words[0][None]) ** 2).sum(axis=2)
    assert found.ravel().tolist() == squares.argmin(axis=1).tolist()


def around(count: int, dim: int, means: int, rng: np.random.Generator) -> Matrix:
    """Return vectors around some means; around one: nothing tells which centroid is near but all of their values."""
    middles = rng.normal(size=(means, dim))
    return (middles[rng.integers(0, means, count)] + rng.normal(size=(count, dim)) / 2).astype(
        np.float32
    )


def strange(vectors: Matrix) -> Matrix:
    """Return vectors among which some are zeros, no numbers, or very large or small ones."""
    vectors = vectors.copy()
    vectors[3], vectors[40, 5], vectors[41, 6], vectors[90, 0] = 0, np.nan, np.inf, -np.inf
    vectors[50], vectors[51] = vectors[50] * 1e-20, vectors[51] * 1e25
    vectors[77, 1:] = 0
    return vectors


@pytest.mark.parametrize("by_product", [False, True])
@pytest.mark.parametrize("dim", [32, 127, 128, 1030])
@pytest.mark.parametrize("means", [1, 40])
def test_nearest_centroids_in_a_batch_equal_single_rows(
    dim: int, means: int, by_product: bool
) -> None:
    """Bytes say of many rows which centroids are too far away: nothing else is found, and no other score."""
    rng = np.random.default_rng(dim)
    words = around(300, dim, means, rng)
    words[200] = words[7]
    for rows in (
        around(333, dim, means, rng),
        np.concatenate([words, words + np.float32(1e-6)]),
        strange(around(200, dim, means, rng)),
        around(70, dim, means, rng) * np.float32(1e12),
    ):
        for some in (words, words[:128] + np.float32(1000), words * np.float32(1e-3)):
            near = Centroids.of(some[None], by_product=by_product)
            found, scores = near.nearest(rows)
            alone = [near.nearest(row[None]) for row in rows]
            assert np.array_equal(found, np.concatenate([each[0] for each in alone]))
            assert np.array_equal(scores, np.concatenate([each[1] for each in alone]))


def test_nearest_centroids_skip_nan_and_infinite_centroids() -> None:
    rng = np.random.default_rng(9)
    words, rows = around(200, 64, 20, rng), around(100, 64, 20, rng)
    for value in (np.nan, np.inf):
        words[150, 3] = value
        with np.errstate(invalid="ignore"):
            near = Centroids.of(words[None], by_product=True)
        found, _ = near.nearest(rows)
        alone = np.concatenate([near.nearest(row[None])[0] for row in rows])
        assert np.array_equal(found, alone)


def test_centroid_sums_and_counts() -> None:
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    sums, counts = np.zeros((3, 3)), np.zeros(3, np.int64)
    add_rows(rows, np.array([2, 0, 2, 2], np.int32), sums, counts)
    assert counts.tolist() == [1, 0, 3]
    assert sums.tolist() == [[3, 4, 5], [0, 0, 0], [15, 18, 21]]


def test_clusters_refuse_arrays_that_do_not_fit() -> None:
    floats, found = np.zeros(32, np.float32), np.zeros(2, np.int32)
    with pytest.raises(ValueError, match="do not fit"):
        nearest(floats, 1, 16, floats, floats[:16], found, floats[:2])
    with pytest.raises(ValueError, match="do not fit"):
        nearest(floats, 0, 16, floats, floats[:16], found, floats[:2])
    rows, sums = np.zeros((1, 2), np.float32), np.zeros((3, 2))
    counts = np.zeros(3, np.int64)
    for wrong in (3, -1):
        with pytest.raises(ValueError, match="not there"):
            add_rows(rows, np.array([wrong], np.int32), sums, counts)
    with pytest.raises(ValueError, match="do not fit"):
        add_rows(rows, np.zeros(2, np.int32), sums, counts)
