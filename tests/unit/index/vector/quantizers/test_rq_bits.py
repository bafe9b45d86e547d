"""Signs in blocks of rows, further bits in blocks of dimensions, beside writers of one bit at a time; turns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from pennon.index.vector.quantizers.rq_bits import (
    blocked,
    flips_of,
    from_stream,
    packed_signs,
    stored_width,
    turned,
    unpacked_signs,
)

Bytes = npt.NDArray[np.uint8]
PLACES = (0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)


def packed_plainly(rows: Bytes) -> Bytes:
    """Return signs as a file has them: reference index-vector, 2.9.4."""
    count, width = rows.shape
    out: list[int] = []
    for start in range(0, count // 32 * 32, 32):
        block = rows[start : start + 32].astype(int)
        for at in range(width):
            values = block[:, at]
            out += [(values[p] & 15) | (values[p + 16] & 15) << 4 for p in PLACES]
            out += [values[p] >> 4 | values[p + 16] >> 4 << 4 for p in PLACES]
    out += rows[count // 32 * 32 :].T.reshape(-1).tolist()
    return np.array(out, np.uint8).reshape(count, width)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 63, 64, 100])
@pytest.mark.parametrize("width", [1, 3, 8, 9])
def test_rq_signs_pack_and_unpack_round_trip(count: int, width: int) -> None:
    rows = np.random.default_rng(count).integers(0, 256, (count, width), np.uint8)
    stored = packed_signs(rows)
    assert stored.tolist() == packed_plainly(rows).tolist()
    assert unpacked_signs(stored).tolist() == rows.tolist()


def bit_of(bits: int, plane: int, dimension: int) -> int:
    """Return where a bit of a dimension's code lies in a block: reference index-vector, 2.9.4."""
    part, at = divmod(dimension, 16)
    if bits in {3, 5, 7} and plane == bits - 1:
        return 8 * 8 * (bits - 1) + 8 * (at % 8) + 2 * part + at // 8
    if bits == 1:
        return dimension
    if bits in {2, 3}:
        return 8 * at + 2 * part + plane
    if bits == 4:
        return 8 * (8 * part + at % 8) + 4 * (at // 8) + plane
    if bits == 5:
        return 8 * (16 * (part // 2) + at) + 4 * (part % 2) + plane
    if bits in {6, 7}:
        if part < 3:
            return 8 * (16 * part + at) + plane
        return 8 * (16 * (plane // 2) + at) + 6 + plane % 2
    return 8 * dimension + plane


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("dimension", [8, 64, 72, 128])
def test_rq_further_bits_are_stored_in_blocks(bits: int, dimension: int) -> None:
    codes = np.random.default_rng(bits).integers(0, 1 << bits, (5, dimension), np.uint8)
    blocks = -(-dimension // 64)
    stored = np.zeros((5, blocks * 64 * bits), np.uint8)
    for at in range(dimension):
        for plane in range(bits):
            place = at // 64 * 64 * bits + bit_of(bits, plane, at % 64)
            stored[:, place] = codes[:, at] >> plane & 1
    assert blocked(codes, bits).tolist() == np.packbits(stored, axis=1, bitorder="little").tolist()
    assert stored_width(dimension, bits) == blocks * 8 * bits
    each = (codes[:, :, None] >> np.arange(bits)) & 1
    stream = np.packbits(each.reshape(5, -1), axis=1, bitorder="little")
    assert from_stream(stream, bits, dimension).tolist() == codes.tolist()


def test_rq_rotation_of_one_vector() -> None:
    """Reference index-vector, 9.4."""
    signs = np.array([0x03, 0x55, 0xF0, 0x99], np.uint8)
    query = np.array([[1, 0, -1, 0.5, 0, 0.25, -0.5, 1]], np.float32)
    expected = [[-1, 0.5, -1, 0, 0.5, -1, 0, -0.25]]
    np.testing.assert_allclose(turned(query, flips_of(signs, 8)), expected, atol=1e-6)


@pytest.mark.parametrize("dimension", [8, 16, 24, 40, 64, 72, 104, 128])
def test_rq_rotation_preserves_inner_products(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    signs = rng.integers(0, 256, 4 * dimension // 8, np.uint8)
    vectors = rng.normal(size=(6, dimension)).astype(np.float32)
    found = turned(vectors, flips_of(signs, dimension))
    np.testing.assert_allclose(found @ found.T, vectors @ vectors.T, 1e-5, 1e-4)
    assert not np.allclose(found, vectors)
