"""Distances between vectors and queries, computed from the vectors themselves.

They are float32; of float64 vectors they are worked out in float64, of all others in float32.
Source: reference index-vector, 0.7 and 6.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from pennon.core.numpy_types import numpy_dtype
from pennon.index.kernels.vectors.distances import differing_bits, vector_distances
from pennon.index.vector.base import Floats2D
from pennon.index.vector.lengths import lengths_of, scaled_where_unusual, usual_length
from pennon.index.vector.metric import Metric


def is_element(kind: pa.DataType) -> bool:
    """Return whether vectors of these elements have distances; those of bfloat16 are stored as two bytes."""
    is_number = t.is_floating(kind) or t.is_uint8(kind) or t.is_int8(kind)
    return bool(is_number or (t.is_fixed_size_binary(kind) and kind.byte_width == 2))


def as_stored(queries: npt.NDArray[np.float64], element: pa.DataType, metric: Metric) -> Floats2D:
    """Return queries as vectors of some type are compared with them.

    They are rounded to that type, as pylance does it, and bytes end at the least and the greatest.
    """
    if t.is_float32(element):
        return queries.astype(np.float32)
    if t.is_uint8(element) or t.is_int8(element):
        least, most = (0, 255) if t.is_uint8(element) else (-128, 127)
        whole = np.trunc(np.clip(np.nan_to_num(queries), least, most)).astype(np.int16)
        return whole.astype(np.uint8) if metric.is_of_bits else whole.astype(np.float32)
    if t.is_float64(element):
        return np.ascontiguousarray(queries, np.float64)
    rounded = queries.astype(np.float32)
    if t.is_float16(element):
        with np.errstate(over="ignore"):
            return rounded.astype(np.float16).astype(np.float32)
    return _rounded_to_bfloat16(rounded) if t.is_fixed_size_binary(element) else rounded


def _rounded_to_bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    bits = values.view(np.uint32)
    up = ((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)
    rounded = ((bits + up) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isfinite(values), rounded, values)


def matrix_of(
    vectors: pa.Array[Any], metric: Metric
) -> tuple[Floats2D, npt.NDArray[np.bool_] | None]:
    """Return a fixed-size list array as rows of numbers, and which of them are vectors; None: all.

    A NULL is none, nor is one with a NULL in it.  Without a copy where the type is one that is compared in.
    """
    if isinstance(vectors, pa.ExtensionArray):
        vectors = vectors.storage
    size = vectors.type.list_size
    items = vectors.values.slice(vectors.offset * size, len(vectors) * size)
    if isinstance(items, pa.ExtensionArray):
        items = items.storage
    valid = None
    if vectors.null_count:
        valid = np.asarray(vectors.is_valid().to_numpy(zero_copy_only=False))
    if items.null_count:
        whole = np.asarray(items.is_valid().to_numpy(zero_copy_only=False))
        each = np.asarray(whole.reshape(len(vectors), size).all(1), np.bool_)
        valid = each if valid is None else valid & each
    return _numbers(items, metric).reshape(len(vectors), size), valid


def _numbers(items: pa.Array[Any], metric: Metric) -> npt.NDArray[Any]:
    """Return the values of an array, with any values under its NULLs."""
    kind, buffer = items.type, items.buffers()[1]
    if buffer is None or not len(items):
        return np.zeros(len(items), np.float64 if t.is_float64(kind) else np.float32)
    if t.is_fixed_size_binary(kind):
        halves = np.frombuffer(buffer, np.uint16)[items.offset : items.offset + len(items)]
        return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if metric.is_of_bits:
        return np.frombuffer(buffer, np.uint8)[items.offset : items.offset + len(items)]
    found = np.frombuffer(buffer, numpy_dtype(kind))[items.offset : items.offset + len(items)]
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float32)


def distances(vectors: Floats2D, queries: Floats2D, metric: Metric) -> npt.NDArray[np.float32]:
    """Return the distance of each query (a row) to each vector (a column).

    Both are of one type: float32, float64, or uint8 for a metric of bits.
    """
    found = np.empty((len(queries), len(vectors)), np.float32)
    number = metric.kernel
    if number is None:
        differing_bits(vectors, queries, found)
        return found
    norms = np.zeros(len(queries), queries.dtype)
    if not metric.normalises:
        vector_distances(vectors, queries, number, norms, found)
        return found
    most = usual_length(vectors.dtype)
    norms = lengths_of(queries)
    if not (len(norms) and norms.min() * most >= 1 and norms.max() <= most):
        queries = scaled_where_unusual(queries)
        norms = lengths_of(queries)
    unusual = np.empty(len(vectors), np.bool_)
    if vector_distances(vectors, queries, number, norms, found, most, unusual.view(np.uint8)):
        some = scaled_where_unusual(vectors[unusual])
        again = np.empty((len(queries), len(some)), np.float32)
        vector_distances(some, queries, number, norms, again)
        found[:, unusual] = again
    return found
