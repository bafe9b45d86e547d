"""Arrays made of buffers: equal to those that pyarrow makes of them, and refused as by pyarrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.made_arrays import fixed_array, fixed_list_array, string_array

FIXED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, None, False]),
    (pa.int8(), [1, None, -3]),
    (pa.uint64(), [1, None, 1 << 63]),
    (pa.float16(), [np.float16(1.5), None, np.float16(2)]),
    (pa.date32(), [1, None, 3]),
    (pa.timestamp("ns", "UTC"), [1, None, 3]),
    (pa.duration("s"), [1, None, 3]),
    (pa.decimal128(20, 2), [1, None, 3]),
    (pa.decimal256(60, 2), [1, None, 3]),
    (pa.binary(3), [b"abc", None, b"def"]),
]


def with_values(kind: pa.DataType, values: list[Any]) -> pa.Array[Any]:
    """Return an array of values of a type."""
    return pa.array(values, kind)


@pytest.mark.parametrize(("kind", "values"), FIXED, ids=[str(kind) for kind, _ in FIXED])
def test_fixed_arrays_of_each_type_equal_pyarrows(kind: pa.DataType, values: list[Any]) -> None:
    for given in (values, [values[0]] * 20, []):
        expected = with_values(kind, given)
        validity, data = expected.buffers()
        if data is None:
            data = pa.py_buffer(b"")
        made = fixed_array(kind, len(given), kind.bit_width, validity, data)
        made.validate(full=True)
        assert made.equals(expected)
        assert made.type == kind
        assert made.null_count == expected.null_count


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()])
def test_string_arrays_of_each_type_equal_pyarrows(kind: pa.DataType) -> None:
    for given in (["a", None, "", "bcd"], ["x"], [""], []):
        expected = with_values(kind, given)
        validity, offsets, data = (each or pa.py_buffer(b"") for each in expected.buffers())
        known = validity if expected.null_count else None
        made = string_array(kind, len(given), known, offsets, data)
        made.validate(full=True)
        assert made.equals(expected)
        assert made.null_count == expected.null_count


@pytest.mark.parametrize("item", [pa.float32(), pa.int8(), pa.bool_(), pa.string()])
def test_fixed_list_arrays_equal_pyarrows(item: pa.DataType) -> None:
    for rows in (0, 1, 6):
        items = pa.array([1, None] * rows, pa.int8()).cast(item)
        kind = pa.list_(item, 2)
        expected = pa.Array.from_buffers(kind, rows, [None], children=[items])
        made = fixed_list_array(kind, rows, None, items)
        made.validate(full=True)
        assert made.equals(expected)
        validity = pa.py_buffer(bytes([0b101010]))
        some = fixed_list_array(kind, rows, validity, items)
        assert some.equals(pa.Array.from_buffers(kind, rows, [validity], children=[items]))


def test_fixed_lists_of_lists_and_of_slices_equal_pyarrows() -> None:
    inner = pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], pa.list_(pa.int16(), 2))
    kind = pa.list_(inner.type, 2)
    made = fixed_list_array(kind, 2, None, inner)
    assert made.to_pylist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    items = pa.array(range(10), pa.int32()).slice(4)
    assert fixed_list_array(pa.list_(pa.int32(), 3), 2, None, items).to_pylist() == [
        [4, 5, 6],
        [7, 8, 9],
    ]


def made_of(kind: pa.DataType, rows: int, buffers: list[pa.Buffer | None]) -> pa.Array[Any]:
    """Return an array of buffers, of whichever kind."""
    none = pa.py_buffer(b"")
    if len(buffers) == 2:
        return fixed_array(kind, rows, kind.bit_width, buffers[0], buffers[1] or none)
    return string_array(kind, rows, buffers[0], buffers[1] or none, buffers[2] or none)


def test_buffers_that_do_not_suffice_are_refused_as_by_pyarrow() -> None:
    words, bits = pa.py_buffer(np.arange(3)), pa.py_buffer(b"")
    cases: list[tuple[pa.DataType, int, list[pa.Buffer | None]]] = [
        (pa.int64(), 4, [None, words]),
        (pa.int64(), 3, [bits, words]),
        (pa.string(), 9, [None, words, pa.py_buffer(b"")]),
        (pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 5], np.int32)), pa.py_buffer(b"ab")]),
        (pa.string(), 1, [None, pa.py_buffer(np.array([-1, 1], np.int32)), pa.py_buffer(b"ab")]),
        (pa.string(), 1, [None, pa.py_buffer(np.array([2, 1], np.int32)), pa.py_buffer(b"ab")]),
        (pa.large_binary(), 3, [None, words, pa.py_buffer(b"ab")]),
        (pa.string(), 1, [bits, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"ab")]),
    ]
    for kind, rows, buffers in cases:
        with pytest.raises(pa.ArrowInvalid) as expected:
            pa.Array.from_buffers(kind, rows, buffers)
        with pytest.raises(pa.ArrowInvalid) as found:
            made_of(kind, rows, buffers)
        assert str(found.value) == str(expected.value)
    items = pa.array([1, 2, 3], pa.int8())
    with pytest.raises(pa.ArrowInvalid):
        fixed_list_array(pa.list_(pa.int8(), 2), 2, None, items)
    with pytest.raises(pa.ArrowInvalid):
        fixed_list_array(pa.list_(pa.int8(), 1), 3, bits, items)
