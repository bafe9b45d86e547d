"""RQ: the vectors of reference index-vector, 9.4, coded as pylance 14.0.2 did."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.index.vector.metric import COSINE, DOT, L2, Metric
from pennon.index.vector.model import Model
from pennon.index.vector.quantizers.rq import RabitCoder, rotated
from pennon.index.vector.quantizers.rq_bits import blocked, packed_signs
from pennon.index.vector.settings import VectorSettings

ROWS = np.array(
    [[((7 * i + 3 * j * j + i * j) % 11 - 5) / 4 for j in range(8)] for i in range(36)], np.float32
)
CENTROID = np.array([[0.25, 0, -0.25, 0, 0.5, 0, 0, -0.5]], np.float32)
SIGNS = bytes([0x03, 0x55, 0xF0, 0x99])
STORED = bytes.fromhex("4c5f2913f5c6f14c3c2964f5c2f19f3cc4d5e5f55dc65fc45ce56c5d4e5f555c664c59d5")


def coder(metric: Metric, bits: int) -> RabitCoder:
    settings = VectorSettings("IVF_RQ", metric, bits=bits)
    return RabitCoder.of(Model(settings, CENTROID, signs=SIGNS))


def coded(metric: Metric, bits: int) -> list[np.ndarray]:
    rows = ROWS
    if metric == COSINE:
        rows = ROWS / np.sqrt((ROWS**2).sum(axis=1))[:, None]
    return list(coder(metric, bits).encode(rows, np.zeros(36, np.int32)))


def test_rq_rotation_of_reference_vectors() -> None:
    query = np.array([[1, 0, -1, 0.5, 0, 0.25, -0.5, 1]], np.float32)
    assert np.allclose(rotated(query, SIGNS), [[-1, 0.5, -1, 0, 0.5, -1, 0, -0.25]], atol=1e-6)
    found = rotated(ROWS[:1] - CENTROID, SIGNS)
    assert np.allclose(found, [[-0.75, 0, 1.5, 0.5, -1, -0.25, 0.75, -1]], atol=1e-6)
    assert np.signbit(found[0, 1])


@pytest.mark.parametrize("dim", [8, 24, 40, 64, 72, 128])
def test_rq_rotation_preserves_lengths(dim: int) -> None:
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(5, dim)).astype(np.float32)
    found = rotated(rows, rng.bytes(4 * dim // 8))
    assert np.allclose((found**2).sum(axis=1), (rows**2).sum(axis=1), rtol=1e-4)


def test_rq_codes_of_three_bits_equal_pylance() -> None:
    signs, add, scale, error, sizes, add_more, scale_more = coded(L2, 3)
    assert packed_signs(signs).tobytes() == STORED
    assert np.allclose(add[[0, 1, 35]], [3.709239, 6.325, 4.875])
    assert np.allclose(scale[[0, 1, 35]], [-3.956522, -4.6, -4.3333335])
    assert np.allclose(error[[0, 1, 35]], [2.1008453, 2.0082047, 1.6146899])
    assert sizes[0].tobytes().hex() == "02030301010301010000000000000000"
    assert np.allclose(add_more[[0, 1]], [4.411799, 6.060811])
    assert np.allclose(scale_more[[0, 1]], [-0.8504674, -0.9324324])


def test_rq_codes_of_one_bit_by_dot_equal_pylance() -> None:
    found = coded(DOT, 1)
    assert len(found) == 4
    assert np.allclose(found[1][[0, 1, 35]], [0.69836944, 1.0375, 1.0625])
    assert np.allclose(found[2][[0, 1, 35]], [-1.978261, -2.3, -2.1666667])
    assert np.allclose(found[3][[0, 1, 35]], [1.0504227, 1.0041023, 0.80734497])


def test_rq_codes_of_six_bits_by_cosine_equal_pylance() -> None:
    signs, add, scale, error, *_ = coded(COSINE, 6)
    assert signs.shape == (36, 1)
    assert np.allclose([add[0], scale[0], error[0]], [0.6095955, -2.1433179, 1.1269432])
    sizes = np.array([[24, 31, 29, 8, 15, 17, 22, 15]], np.uint8)
    expected = "080f0d080f01060f" + "00" * 24 + "0101010000010100"
    assert blocked(sizes, 5).tobytes().hex() == expected


def test_rq_codes_of_the_centroid_are_finite() -> None:
    found = coder(L2, 5).encode(CENTROID, np.zeros(1, np.int32))
    assert [each.tolist() for each in found[1:4]] == [[0], [0], [0]]
    assert all(np.isfinite(each).all() for each in found)
