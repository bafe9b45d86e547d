"""The centroids nearest to vectors, beside a plain twin."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.encoding.kernels.clusters import add_rows, nearest
from pennon.index.vector.kmeans import Centroids


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("count", [1, 15, 16, 17, 256])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 100])
def test_as_computed_plainly(parts: int, count: int, rows: int) -> None:
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


def test_first_of_equals_and_of_none() -> None:
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


def test_sums_and_counts() -> None:
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    sums, counts = np.zeros((3, 3)), np.zeros(3, np.int64)
    add_rows(rows, np.array([2, 0, 2, 2], np.int32), sums, counts)
    assert counts.tolist() == [1, 0, 3]
    assert sums.tolist() == [[3, 4, 5], [0, 0, 0], [15, 18, 21]]


def test_what_does_not_fit() -> None:
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
