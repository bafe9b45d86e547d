"""Centroids trained on a sample."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.index.vector.kmeans import Centroids, k_means
from pennon.index.vector.metric import DOT, HAMMING
from pennon.index.vector.rows import Floats


def clustered(clusters: int, rows: int, dim: int = 16, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(clusters, dim)) * 5
    own = means[rng.integers(0, clusters, rows)] + rng.normal(size=(rows, dim)) * 0.1
    return own.astype(np.float32)


def test_same_seed_same_centroids() -> None:
    rows = clustered(20, 3000)
    first = k_means(rows, 40, seed=7, max_iters=20)
    again = k_means(rows, 40, seed=7, max_iters=20)
    assert np.array_equal(first.centroids, again.centroids)
    assert first.loss == again.loss
    other = k_means(rows, 40, seed=8, max_iters=20)
    assert not np.array_equal(first.centroids, other.centroids)


def test_clusters_are_seldom_cut() -> None:
    rng = np.random.default_rng(2)
    means, of = rng.normal(size=(60, 16)) * 5, rng.integers(0, 60, 6000)
    rows = (means[of] + rng.normal(size=(6000, 16)) * 0.1).astype(np.float32)
    for seed in range(5):
        trained = k_means(rows, 30, seed=seed, max_iters=50)
        found = Centroids.of(trained.centroids[None]).nearest(rows)[0].ravel()
        assert len(np.unique(found)) == 30
        cut = [number for number in range(60) if len(np.unique(found[of == number])) > 1]
        assert len(cut) <= 3, (seed, cut)


def test_loss_is_the_sum_of_squares() -> None:
    rows = clustered(3, 500) + 100
    trained = k_means(rows, 5, seed=1, max_iters=1)
    assert trained.loss > 0
    settled = k_means(rows, 5, seed=1, max_iters=60)
    squares = ((rows[:, None].astype(np.float64) - settled.centroids[None]) ** 2).sum(axis=2)
    assert settled.loss == pytest.approx(squares.min(axis=1).sum(), rel=1e-2)


def test_k_means_of_equal_rows_has_all_centroids() -> None:
    rows = np.ones((100, 4), np.float32)
    assert np.array_equal(k_means(rows, 8, seed=0, max_iters=5).centroids, np.ones((8, 4)))
    assert len(k_means(rows[:3], 8, seed=0, max_iters=5).centroids) == 3


def test_dot_centroids_have_length_one() -> None:
    rows = np.concatenate([clustered(6, 600), np.zeros((5, 16), np.float32)])
    trained = k_means(rows, 6, seed=3, max_iters=20, metric=DOT)
    assert np.allclose((trained.centroids**2).sum(axis=1), 1, atol=1e-5)


def test_hamming_centroids_are_bits() -> None:
    rng = np.random.default_rng(0)
    means = rng.integers(0, 2, (4, 64))
    rows = (means[rng.integers(0, 4, 400)] ^ (rng.random((400, 64)) < 0.05)).astype(np.float32)
    trained = k_means(rows, 4, seed=0, max_iters=20, metric=HAMMING)
    assert {tuple(each) for each in trained.centroids.astype(int).tolist()} == {
        tuple(each) for each in means.tolist()
    }
