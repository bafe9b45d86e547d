"""Bitmaps and NULL values, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.encoding.kernels.nulls import copy_bits, zero_nulls

RANDOM = np.random.default_rng(1)


@pytest.mark.parametrize("offset", [0, 1, 7, 8, 13])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 64, 65])
def test_copy_bits_equals_numpy(offset: int, count: int) -> None:
    bitmap = RANDOM.integers(0, 256, 20, np.uint8)
    bits = np.unpackbits(bitmap, bitorder="little")[offset : offset + count]
    assert (
        copy_bits(bitmap, offset, count).tobytes() == np.packbits(bits, bitorder="little").tobytes()
    )


def test_copy_bits_stays_within_the_bitmap() -> None:
    assert copy_bits(np.full(2, 255, np.uint8), 9, 7).tolist() == [127]
    with pytest.raises(ValueError, match="too short"):
        copy_bits(np.zeros(2, np.uint8), 10, 7)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize("shift", [0, 1])
def test_zero_nulls_equals_numpy(width: int, shift: int) -> None:
    rows = 37
    values = RANDOM.integers(1, 256, rows * width + shift, np.uint8)[shift:]
    valid = RANDOM.random(rows) < 0.5
    want = np.where(valid[:, None], values.reshape(rows, width), 0).ravel()
    bitmap = np.packbits(valid, bitorder="little")
    assert zero_nulls(values, bitmap, rows, width).tolist() == want.tolist()


def test_zero_nulls_checks_sizes() -> None:
    with pytest.raises(ValueError, match="bytes"):
        zero_nulls(np.zeros(8, np.uint8), np.zeros(1, np.uint8), 3, 4)
    with pytest.raises(ValueError, match="too short"):
        zero_nulls(np.zeros(36, np.uint8), np.zeros(1, np.uint8), 9, 4)
