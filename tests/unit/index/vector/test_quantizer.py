"""Float rows cut to uint8 bounds: when they are made, and their memory."""

import numpy as np

from pennon.index.vector.quantizer import Uint8Bounds


def test_uint8_bounds_are_made_on_repeated_comparison() -> None:
    rows = np.random.default_rng(3).normal(size=(100, 32)).astype(np.float32).view(np.uint8)
    cut = Uint8Bounds(rows)
    assert cut.bytes_for(100) is None
    made = cut.bytes_for(100)
    assert made is not None
    assert made.nbytes == cut.size_bytes < rows.nbytes
    assert cut.bytes_for(1) is made
    assert Uint8Bounds(rows).bytes_for(800) is not None


def test_uint8_bounds_of_equal_or_few_rows_are_not_made() -> None:
    cut = Uint8Bounds(np.zeros((100, 128), np.uint8))  # which are equal
    assert [cut.bytes_for(1000) for _ in range(2)] == [None, None]
    few = Uint8Bounds(np.zeros((10, 128), np.uint8))
    assert few.size_bytes == 0
    assert few.bytes_for(1000) is None
