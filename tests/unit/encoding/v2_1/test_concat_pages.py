"""Values of several pages are put together where they mean the same, and only there."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.block import (
    AllNullBlock,
    Block,
    FixedSizeListBlock,
    FixedWidthBlock,
    VariableBlock,
)
from pennon.encoding.v2_1.concat_pages import join_pages
from pennon.encoding.v2_1.layouts import Layer
from pennon.encoding.v2_1.page import LevelArray, Levels, PageValues

ITEM = (Layer.NULLABLE_ITEM,)


def page(
    values: Block, definition: LevelArray | None = None, layers: tuple[Layer, ...] = ITEM
) -> PageValues:
    return PageValues(values, None, Levels(None, definition, layers))


def numbers(*values: int, spare: int = 0) -> FixedWidthBlock:
    data = np.array(values, np.int32).tobytes() + b"\xaa" * spare
    return FixedWidthBlock(len(values), 32, pa.py_buffer(data))


def words(*values: bytes, bits: int = 32) -> VariableBlock:
    ends = np.cumsum([0, *map(len, values)]).astype(f"i{bits // 8}")
    data = b"".join(values) + b"spare"
    return VariableBlock(len(values), bits, pa.py_buffer(ends), pa.py_buffer(data))


def levels(*values: int) -> LevelArray:
    return np.array(values, np.uint16)


def test_joined_number_pages_with_levels() -> None:
    joined = join_pages([page(numbers(1, 2, spare=3), levels(0, 1)), page(numbers(3), levels(1))])
    assert joined is not None
    assert joined.values == numbers(1, 2, 3)
    assert joined.levels.definition is not None
    assert joined.levels.definition.tolist() == [0, 1, 1]
    assert joined.levels.rep is None


def test_joined_string_pages() -> None:
    joined = join_pages([page(words(b"a", b"")), page(words(b"bcd", bits=64)), page(words())])
    assert joined is not None
    assert isinstance(joined.values, VariableBlock)
    assert joined.values.offset_bits == 32
    assert np.frombuffer(joined.values.offsets, np.int32).tolist() == [0, 1, 1, 4]
    assert joined.values.data.to_pybytes() == b"abcd"


def test_joined_pages_of_fixed_size_lists() -> None:
    one, two = (FixedSizeListBlock(1, 2, numbers(*items)) for items in ((1, 2), (3, 4)))
    joined = join_pages([page(one), page(two)])
    assert joined is not None
    assert joined.values == FixedSizeListBlock(2, 2, numbers(1, 2, 3, 4))


BIT = FixedWidthBlock(1, 1, pa.py_buffer(b"\x01"))
LIST = FixedSizeListBlock(1, 1, numbers(1))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (page(numbers(1)), page(numbers(2), layers=(Layer.ALL_VALID_ITEM,))),
        (page(numbers(1), levels(0)), page(numbers(2))),
        (page(numbers(1)), page(words(b"a"))),
        (page(words(b"a")), page(numbers(1))),
        (page(numbers(1)), page(FixedWidthBlock(1, 16, pa.py_buffer(b"12")))),
        (page(FixedWidthBlock(1, 32, pa.py_buffer(b"12"))), page(numbers(1))),
        (page(BIT), page(BIT)),
        (page(LIST), page(FixedSizeListBlock(1, 2, numbers(1, 2)))),
        (page(LIST), page(numbers(1))),
        (page(AllNullBlock(1)), page(AllNullBlock(1))),
        (PageValues(numbers(0), numbers(7), Levels(None, None, ITEM)), page(numbers(1))),
    ],
)
def test_pages_of_different_layouts_are_not_joined(left: PageValues, right: PageValues) -> None:
    assert join_pages([left, right]) is None
