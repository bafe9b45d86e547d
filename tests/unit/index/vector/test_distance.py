"""Distances, and vectors of every type as rows of numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pennon.index.vector.distance import (
    as_stored,
    distances,
    matrix_of,
)
from pennon.index.vector.metric import (
    DOT,
    HAMMING,
    L2,
)


def vectors(values: list[list[float | None] | None], element: pa.DataType) -> pa.Array:
    return pa.array(values, pa.list_(element, 2))


def test_a_slice_is_the_slice_and_not_copied() -> None:
    whole = vectors([[0, 1], [2, 3], [4, 5]], pa.float32())
    matrix, valid = matrix_of(whole.slice(1), L2)
    np.testing.assert_array_equal(matrix, [[2, 3], [4, 5]])
    assert valid is None
    memory = whole.values.buffers()[1].address
    assert matrix.ctypes.data == memory + 8


def test_null_vectors_and_items_are_invalid() -> None:
    whole = vectors([[0, 1], None, [2, None], [4, 5]], pa.float32())
    _, valid = matrix_of(whole, L2)
    assert valid is not None
    assert valid.tolist() == [True, False, False, True]
    _, valid = matrix_of(whole.slice(2), L2)
    assert valid is not None
    assert valid.tolist() == [False, True]


@pytest.mark.parametrize(
    ("element", "kind"),
    [
        (pa.float16(), np.float32),
        (pa.float32(), np.float32),
        (pa.float64(), np.float64),
        (pa.int8(), np.float32),
        (pa.uint8(), np.float32),
    ],
)
def test_distance_types_of_vector_elements(element: pa.DataType, kind: type) -> None:
    matrix, _ = matrix_of(vectors([[1, 2], [3, 4]], element), L2)
    queries = as_stored(np.array([[1.0, 4.0]]), element, L2)
    assert matrix.dtype == queries.dtype == kind
    np.testing.assert_array_equal(distances(matrix, queries, L2), [[4, 4]])
    np.testing.assert_array_equal(distances(matrix, queries, DOT), [[-8, -18]])


def test_bits_of_bytes() -> None:
    matrix, _ = matrix_of(vectors([[0, 255], [3, 4]], pa.uint8()), HAMMING)
    queries = as_stored(np.array([[0.9, 300]]), pa.uint8(), HAMMING)
    assert queries.tolist() == [[0, 255]]
    np.testing.assert_array_equal(distances(matrix, queries, HAMMING), [[0, 9]])
    signed = as_stored(np.array([[-1.0, 4]]), pa.int8(), HAMMING)
    matrix, _ = matrix_of(vectors([[-1, 4]], pa.int8()), HAMMING)
    np.testing.assert_array_equal(distances(matrix, signed, HAMMING), [[0]])


def test_bfloat16_is_the_upper_half_of_a_float() -> None:
    halves = (np.array([1.5, -2.0, 0.25, 3.0], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    items = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(2), 4, [None, pa.py_buffer(halves.tobytes())]
    )
    matrix, _ = matrix_of(pa.FixedSizeListArray.from_arrays(items, 2), L2)
    np.testing.assert_array_equal(matrix, [[1.5, -2], [0.25, 3]])
    near = as_stored(np.array([[1.001, 1.007]]), pa.binary(2), L2)
    np.testing.assert_array_equal(near, [[1.0, 1.0078125]])


def test_queries_are_rounded_to_the_type_of_the_vectors() -> None:
    assert as_stored(np.array([[0.1]]), pa.float16(), L2)[0, 0] == np.float32(np.float16(0.1))
    assert as_stored(np.array([[0.1]]), pa.float64(), L2)[0, 0] == 0.1
    assert as_stored(np.array([[1e9]]), pa.float16(), L2)[0, 0] == np.inf
