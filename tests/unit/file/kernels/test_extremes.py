"""Least and greatest strings against a slow twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.file.kernels.extremes import string_extremes

TEXTS = st.one_of(st.none(), st.text("ab\u00e9\u65e5\U0001f600", max_size=6))


def cut(value: bytes, most: int, *, is_text: bool) -> bytes:
    if len(value) <= most or not is_text:
        return value[:most]
    for end in range(most, -1, -1):
        try:
            value[:end].decode()
        except UnicodeDecodeError:
            continue
        return value[:end]
    raise AssertionError


@given(
    st.lists(st.lists(TEXTS, max_size=5), max_size=5),
    st.integers(1, 8),
    st.booleans(),
    st.sampled_from([np.int32, np.int64]),
    st.integers(0, 9),
)
def test_string_extremes_equal_the_twin(
    groups: list[list[str | None]],
    most: int,
    is_text: bool,
    kind: type[np.int32 | np.int64],
    bit_offset: int,
) -> None:
    rows = [row for group in groups for row in group]
    values = [b"" if row is None else row.encode() for row in rows]
    offsets: Any = np.cumsum([0, *map(len, values)]).astype(kind)
    borders = np.cumsum([0, *map(len, groups)]).astype(np.int64)
    bits = np.concatenate([np.zeros(bit_offset, bool), [row is not None for row in rows]])
    validity = np.packbits(bits.astype(np.uint8), bitorder="little") if bits.size else None
    data = np.frombuffer(b"".join(values) or b"-", np.uint8)
    least, greatest, is_long = string_extremes(
        data, offsets, validity, bit_offset if bits.size else 0, borders, most, is_text
    )
    for number, (start, group) in enumerate(zip(borders.tolist(), groups, strict=False)):
        held = [(start + n, each.encode()) for n, each in enumerate(group) if each is not None]
        short = [(row, cut(each, most, is_text=is_text)) for row, each in held]
        assert bool(is_long[number]) == any(len(each) > most for _, each in held)
        if not held:
            assert (least[number], greatest[number]) == (-1, -1)
            continue
        assert dict(short)[int(least[number])] == min(each for _, each in short)
        assert dict(held)[int(greatest[number])] == max(each for _, each in held)


@pytest.mark.parametrize(
    ("offsets", "borders", "validity", "message"),
    [
        ([0, 3], [0, 2], None, "leave the strings"),
        ([0, 3], [1, 0], None, "fall"),
        ([0, 9], [0, 1], None, "leave the data"),
        ([0, 2, 1], [0, 2], None, "offsets fall"),
        ([0, 1, 2], [0, 2], np.zeros(0, np.uint8), "too short"),
    ],
)
def test_string_extremes_with_wrong_arrays_are_refused(
    offsets: list[int], borders: list[int], validity: np.ndarray | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        string_extremes(
            np.frombuffer(b"abc", np.uint8),
            np.array(offsets, np.int64),
            validity,
            0,
            np.array(borders, np.int64),
            64,
            is_text=True,
        )
