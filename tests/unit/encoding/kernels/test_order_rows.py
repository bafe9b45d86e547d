"""Rows of several arrays in any order: arguments that do not fit, and offsets that lie."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pennon.encoding.kernels.order_rows import BitRows, FixedRows, StringRows
from pennon.errors import FormatError


def bytes_of(values: Any, dtype: str) -> Any:
    """Return numbers as bytes."""
    return np.array(values, dtype).view(np.uint8)


def order(*rows: int) -> Any:
    """Return numbers of rows."""
    return np.array(rows, np.int64)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 16, 100])
def test_fixed_rows_of_each_width_equal_numpy(width: int) -> None:
    data = np.random.default_rng(width).integers(0, 256, (40, width), np.uint8)
    parts = [data[:0], data[:7], data[7:8], data[8:8], data[8:], data[:0]]
    rows = FixedRows([part.reshape(-1) for part in parts], width)
    chosen = np.random.default_rng(1).integers(0, 40, 100)
    assert rows.rows == 40
    assert (rows.put(chosen).reshape(-1, width) == data[chosen]).all()


@pytest.mark.parametrize("width", [4, 8])
def test_string_rows_of_each_offset_width_equal_python(width: int) -> None:
    strings = [bytes([65 + number]) * (number % 5) for number in range(30)]
    parts = [strings[:4], [], strings[4:5], strings[5:]]
    tables = [bytes_of(np.cumsum([0, *map(len, part)]), f"i{width}") for part in parts]
    sources = [np.frombuffer(b"".join(part) + b"?", np.uint8) for part in parts]
    chosen = np.random.default_rng(1).integers(0, 30, 100)
    offsets, values = StringRows(sources, tables, width).put(chosen)
    ends = offsets.view(f"i{width}")
    found = [values[a:b].tobytes() for a, b in pairwise(ends.tolist())]
    assert found == [strings[number] for number in chosen.tolist()]


@pytest.mark.parametrize("row", [-1, 3, 1 << 62])
def test_rows_that_are_not_there_are_refused(row: int) -> None:
    values = bytes_of([1, 2, 3], "i4")
    for rows in (
        FixedRows([values], 4),
        BitRows([values], order(0), order(3)),
        StringRows([values], [bytes_of([0, 1, 2, 3], "i4")], 4),
    ):
        with pytest.raises(ValueError, match="of 3"):
            rows.put(order(0, row))
    with pytest.raises(ValueError, match="of 0"):
        FixedRows([], 4).put(order(0))


def test_arrays_that_do_not_fit_are_refused() -> None:
    seven = np.zeros(7, np.uint8)
    with pytest.raises(ValueError, match="no values of 4 bytes"):
        FixedRows([seven], 4)
    with pytest.raises(ValueError, match="values of 0 bytes"):
        FixedRows([seven], 0)
    with pytest.raises(ValueError, match="57 bits in 7 bytes"):
        BitRows([seven], order(0), order(57))
    with pytest.raises(ValueError, match="56 bits in 7 bytes"):
        BitRows([seven], order(1), order(56))
    with pytest.raises(ValueError, match="before the first"):
        BitRows([seven], order(-1), order(5))
    with pytest.raises(ValueError, match="differ in length"):
        BitRows([seven], order(0, 1), order(5))
    with pytest.raises(ValueError, match="are no offsets"):
        StringRows([seven], [seven], 4)
    with pytest.raises(ValueError, match="no such offsets"):
        StringRows([seven], [seven], 2)


@pytest.mark.parametrize("offsets", [[0, 5, 3], [0, 2, 9], [-1, 2, 4]])
def test_string_offsets_that_lie_are_format_errors(offsets: list[int]) -> None:
    rows = StringRows([np.zeros(7, np.uint8)], [bytes_of(offsets, "i4")], 4)
    with pytest.raises(FormatError, match="fall, or leave"):
        rows.put(order(0, 1))
