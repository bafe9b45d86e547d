"""Codes of the vectors in reference index-vector, 9: each as pylance 14.0.2 wrote it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.index.base import Values
from pennon.index.vector.build.partitions import coder_of, sorted_by_partition
from pennon.index.vector.build.train import train
from pennon.index.vector.metric import COSINE, DOT, L2, Metric
from pennon.index.vector.model import Model
from pennon.index.vector.rows import usable
from pennon.index.vector.settings import VectorSettings

ROWS = np.array(
    [
        (1, 0, 0, 0),
        (0.9, 0.1, 0, 0),
        (1.1, 0, 0.2, 0),
        (0.8, 0, 0, -0.1),
        (0, 0, 0, 2),
        (0, 0.3, 0, 1.9),
        (0.1, 0, -0.2, 2.2),
        (0, 0, 0.5, 1.5),
    ],
    np.float32,
)
CENTROIDS = np.array([(1, 0, 0, 0), (0, 0, 0, 2)], np.float32)
UNIT = np.array([(1, 0, 0, 0), (0, 0, 0, 1)], np.float32)
_EIGHT = [((j % 16 - 7.5) / 16, (j // 16 - 7.5) / 16) for j in range(256)]
_FOUR = [((j % 4 - 1.5) / 4, (j // 4 - 1.5) / 4) for j in range(16)]
WORDS = {8: np.array([_EIGHT] * 2, np.float32), 4: np.array([_FOUR] * 2, np.float32)}


def vectors(rows: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])


def stored(model: Model) -> list[list[Any]]:
    """Return the codes of each partition as the file has them."""
    found = sorted_by_partition([Values(vectors(ROWS), np.arange(8, dtype=np.uint64))], model)
    coder = coder_of(model)
    parts = [found.partition(number) for number in range(2)]
    assert [part.rows.tolist() for part in parts] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    return [coder.pack(part.columns)[0].tolist() for part in parts]


def flat(rows: list[Any]) -> list[Any]:
    found: list[Any] = np.array(rows).ravel().tolist()
    return found


def product(metric: Metric, bits: int) -> Model:
    settings = VectorSettings("IVF_PQ", metric, sub_vectors=2, bits=bits)
    return Model(settings, UNIT if metric == COSINE else CENTROIDS, WORDS[bits])


def test_codes_of_8_bits_sub_vector_by_sub_vector() -> None:
    first, second = stored(product(L2, 8))
    assert flat(first) == [119, 150, 121, 116, 119, 119, 123, 103]
    assert flat(second) == [119, 199, 121, 119, 119, 103, 180, 15]


@pytest.mark.parametrize(
    ("metric", "codes"),
    [
        (L2, [[85, 89, 102, 85], [85, 93, 150, 53]]),
        (COSINE, [[85, 89, 101, 85], [85, 89, 86, 117]]),
        (DOT, [[87, 91, 103, 87], [213, 221, 214, 245]]),
    ],
)
def test_codes_of_4_bits(metric: Metric, codes: list[list[int]]) -> None:
    assert [flat(each) for each in stored(product(metric, 4))] == codes


def test_codes_of_scalars() -> None:
    bounds = -0.20000000298023224, 2.200000047683716
    model = Model(VectorSettings("IVF_SQ"), CENTROIDS, bounds=bounds)
    first, second = stored(model)
    assert first == [[127, 21, 21, 21], [116, 31, 21, 21], [138, 21, 42, 21], [106, 21, 21, 10]]
    assert second == [[21, 21, 21, 233], [21, 53, 21, 223], [31, 21, 0, 255], [21, 21, 74, 180]]
    trained = train(VectorSettings("IVF_SQ"), ROWS, 8, centroids=CENTROIDS)
    assert trained.bounds == bounds
    same = Model(model.settings, CENTROIDS, bounds=(1.0, 1.0))
    assert flat(stored(same)[0]) == [0] * 16


def test_vectors_of_cosine_have_length_one() -> None:
    first, second = stored(Model(VectorSettings("IVF_FLAT", COSINE), UNIT))
    assert np.allclose(first[1], (0.99388373, 0.11043153, 0, 0))
    assert np.allclose(second[2], (0.04522156, 0, -0.09044313, 0.99487442))


@pytest.mark.parametrize("rows", [0, 1, 2, 7])
def test_pq_codes_pack_and_unpack_round_trip(rows: int) -> None:
    model = product(L2, 8)
    plain = Model(replace(model.settings, is_plain=True), CENTROIDS, model.codebook)
    codes = np.random.default_rng(0).integers(0, 256, (rows, 2), np.uint8)
    for coder in (coder_of(model), coder_of(plain)):
        assert np.array_equal(coder.unpack(coder.pack((codes,)))[0], codes)
    assert np.array_equal(coder_of(plain).pack((codes,))[0], codes)


@pytest.mark.parametrize(("metric", "kept"), [(L2, [0, 5, 6]), (DOT, [0, 5, 6]), (COSINE, [0, 6])])
def test_usable_vectors_leave_out_null_and_nan(metric: Metric, kept: list[int]) -> None:
    nan, inf = float("nan"), float("inf")
    rows = [[1, 2], None, [nan, 1], [1, inf], [None, 1], [0, 0], [3, 4], [-inf, 0]]
    column = pa.array([None, *rows], pa.list_(pa.float32(), 2))[1:]
    found, numbers = usable(column, np.arange(8, dtype=np.uint64), metric)
    assert numbers.tolist() == kept
    last = [0.6, 0.8] if metric == COSINE else [3, 4]
    assert np.allclose(found[-1], last)


def test_lists_of_vectors() -> None:
    kind = pa.list_(pa.list_(pa.float32(), 2))
    column = pa.array([[[1, 0], [0, 1]], None, [], [[0, 0], [0, 2]]], kind)
    found, numbers = usable(column, np.array([3, 5, 7, 9], np.uint64), COSINE)
    assert numbers.tolist() == [3, 3, 9]
    assert found.tolist() == [[1, 0], [0, 1], [0, 1]]


def test_partitions_of_a_table() -> None:
    assert VectorSettings("IVF_FLAT").partitions(100_000) == 24
    assert VectorSettings("IVF_PQ", sub_vectors=4).partitions(100_000) == 12
    assert VectorSettings("IVF_PQ", sub_vectors=4, num_partitions=8).partitions(300) == 1
    assert VectorSettings("IVF_PQ", sub_vectors=4, num_partitions=8).partitions(768) == 3
    assert VectorSettings("IVF_SQ", num_partitions=8).partitions(5) == 5
    assert VectorSettings("IVF_FLAT", partition_rows=10).partitions(1000) == 100
    assert VectorSettings("IVF_FLAT").partitions(0) == 1
