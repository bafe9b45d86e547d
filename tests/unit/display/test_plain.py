"""Arrow values as plain values; tests/unit/cli/test_rows.py has one of every type."""

from __future__ import annotations

import doctest
from typing import Any

import pyarrow as pa
import pytest

from pennon.display import html, plain
from pennon.display.plain import plain_values


def test_examples_of_plain_values_and_html() -> None:
    assert doctest.testmod(plain, extraglobs={"pa": pa}).failed == 0
    assert doctest.testmod(html).failed == 0


NESTED = [
    pa.array([[1], None, [], [2, None]], pa.list_(pa.int64())),
    pa.array([[1], None, [], [2, None]], pa.large_list(pa.int64())),
    pa.array([[1, 2], None, [3, None]], pa.list_(pa.int64(), 2)),
    pa.array([{"a": [1]}, None, {"a": None}], pa.struct({"a": pa.list_(pa.int64())})),
    pa.array([None, [{"a": 1}], [None]], pa.list_(pa.struct({"a": pa.int64()}))),
    pa.array([{}, None], pa.struct([])),
    pa.array([None, None], pa.null()),
]


@pytest.mark.parametrize("array", NESTED, ids=lambda array: str(array.type))
def test_nested_values_of_every_slice(array: pa.Array[Any]) -> None:
    for start in range(len(array) + 1):
        for end in range(start, len(array) + 1):
            part = array[start:end]
            assert plain_values(part) == part.to_pylist()


def test_times_outside_of_python_s_years() -> None:
    far = pa.array([2**60, -(2**60)], pa.timestamp("s"))
    assert plain_values(far)[0].startswith("365")
    assert plain_values(pa.array([2**31 - 1], pa.date32())) == ["5881580-07-11"]


def test_extension_types_as_their_storage() -> None:
    uuids = pa.array([b"\0" * 16, None], pa.uuid())
    assert plain_values(uuids) == ["00000000-0000-0000-0000-000000000000", None]
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None]))
    assert plain_values(texts) == ['{"a": 1}', None]


def test_invalid_utf_8_in_text_is_escaped() -> None:
    data = pa.array([b"a\xff"], pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 1, data.buffers())
    assert plain_values(broken) == ["a\\xff"]
