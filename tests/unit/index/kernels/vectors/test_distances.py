"""Distances of the kernel against the same in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pennon.index.kernels.vectors.distances import differing_bits, vector_distances

SIZES = [0, 1, 3, 7, 8, 9, 16, 31, 32, 33, 64, 100, 131]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_distances_equal_float64(size: int, kind: Any) -> None:
    rng = np.random.default_rng(size)
    for rows in (1, 2, 15, 16, 17, 35):
        for asked in (1, 2, 3, 4, 5, 9):
            vectors = rng.normal(size=(rows, size)).astype(kind)
            queries = rng.normal(size=(asked, size)).astype(kind)
            wide, many = vectors.astype(np.float64), queries.astype(np.float64)
            norms = np.linalg.norm(many, axis=1)
            products = many @ wide.T
            with np.errstate(invalid="ignore", divide="ignore"):
                cosines = products / norms[:, None] / np.linalg.norm(wide, axis=1)
            squares = ((many[:, None] - wide[None]) ** 2).sum(2)
            for metric, expected in ((0, squares), (1, 1 - cosines), (2, 1 - products)):
                found = np.full((asked, rows), np.inf, np.float32)
                vector_distances(vectors, queries, metric, norms.astype(kind), found)
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6 * (1 + size**0.5))


def test_distances_to_nan_and_infinity() -> None:
    vectors = np.ones((20, 40), np.float32)
    vectors[3, 39], vectors[4, 0] = np.nan, np.inf
    found = np.empty((1, 20), np.float32)
    vector_distances(vectors, vectors[:1], 0, np.ones(1, np.float32), found)
    assert np.isnan(found[0, 3])
    assert found[0, 4] == np.inf
    assert (np.delete(found[0], [3, 4]) == 0).all()


@pytest.mark.parametrize("size", SIZES)
def test_hamming_distances_equal_numpy(size: int) -> None:
    rng = np.random.default_rng(size)
    vectors = rng.integers(0, 256, (37, size)).astype(np.uint8)
    queries = rng.integers(0, 256, (5, size)).astype(np.uint8)
    found = np.empty((5, 37), np.float32)
    differing_bits(vectors, queries, found)
    expected = np.unpackbits(queries[:, None] ^ vectors[None], axis=2).sum(2)
    np.testing.assert_array_equal(found, expected)


def test_lengths_are_checked() -> None:
    vectors, norms = np.ones((4, 3), np.float32), np.ones(2, np.float32)
    out = np.empty((2, 4), np.float32)
    with pytest.raises(ValueError, match="one length"):
        vector_distances(vectors, np.ones((2, 4), np.float32), 0, norms, out)
    with pytest.raises(ValueError, match="room"):
        vector_distances(vectors, np.ones((3, 3), np.float32), 0, np.ones(3, np.float32), out)
    with pytest.raises(ValueError, match="norm"):
        vector_distances(vectors, np.ones((2, 3), np.float32), 0, np.ones(1, np.float32), out)
    with pytest.raises(ValueError, match="metric"):
        vector_distances(vectors, np.ones((2, 3), np.float32), 3, norms, out)
    marks = np.ones((4, 3), np.uint8)
    with pytest.raises(ValueError, match="one length"):
        differing_bits(marks, np.ones((2, 2), np.uint8), out)
    with pytest.raises(ValueError, match="room"):
        differing_bits(marks, np.ones((2, 3), np.uint8), np.empty((2, 3), np.float32))


def test_distances_of_empty_arrays() -> None:
    none = np.empty((0, 3), np.float32)
    vector_distances(none, none, 0, np.empty(0, np.float32), np.empty((0, 0), np.float32))
    differing_bits(none.astype(np.uint8), np.ones((2, 3), np.uint8), np.empty((2, 0), np.float32))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_cosine_marks_vectors_with_length_out_of_bounds(kind: Any) -> None:
    vectors = np.ones((70, 9), kind)
    vectors[[3, 40, 69]] = [[1e-30], [0], [np.nan]]
    vectors[33] = 1e30
    marks = np.full(70, 7, np.uint8)
    found = np.empty((2, 70), np.float32)
    norms = np.full(2, 3, kind)
    assert vector_distances(vectors, vectors[:2], 1, norms, found, 2.0**40, marks) == 4
    assert np.flatnonzero(marks).tolist() == [3, 33, 40, 69]
    assert vector_distances(vectors, vectors[:2], 0, norms, found, 2.0**40, marks) == 0
    with pytest.raises(ValueError, match="mark of each"):
        vector_distances(vectors, vectors[:2], 1, norms, found, 2.0**40, marks[:69])
