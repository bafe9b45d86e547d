"""Filters and takes of slices, against lists of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.selection import in_order, in_orders, keep, keep_rows, take

PAIRS = pa.list_(pa.list_(pa.int64(), 2), 3)
TYPES = [
    *(PAIRS, pa.list_(PAIRS, 2), pa.struct([("x", PAIRS)]), pa.list_(pa.struct([("x", PAIRS)]))),
    *(pa.large_list(PAIRS), pa.list_(pa.int64(), 2), pa.int64()),
]


def _value(kind: pa.DataType, number: int) -> Any:
    if pa.types.is_struct(kind):
        return {"x": _value(kind.field(0).type, number)}
    if kind.num_fields:
        size = kind.list_size if pa.types.is_fixed_size_list(kind) else number % 3
        return [_value(kind.value_type, number * 10 + item) for item in range(size)]
    return number


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("start", [0, 3])
def test_filter_and_take_of_slices_equal_python(kind: pa.DataType, start: int) -> None:
    values = [None if number % 5 == 4 else _value(kind, number) for number in range(20)]
    array, values = pa.array(values, kind)[start:], values[start:]
    mask = np.arange(len(values)) % 3 != 1
    wanted = [value for value, kept in zip(values, mask.tolist(), strict=True) if kept]
    assert keep(array, pa.array(mask)).to_pylist() == wanted
    assert take(array, pa.array(np.flatnonzero(mask))).to_pylist() == wanted
    batch = pa.record_batch([array, pa.array(values, kind)], ["a", "b"])
    kept = keep_rows(batch, pa.array(mask))
    assert kept.column("a").to_pylist() == kept.column("b").to_pylist() == wanted
    assert kept.schema == batch.schema


PLAIN = [pa.int8(), pa.uint16(), pa.float32(), pa.int64(), pa.timestamp("us"), pa.duration("s")]
TEXTS = [pa.string(), pa.binary(), pa.large_string(), pa.large_binary(), pa.binary(3)]
OTHERS = [
    *(pa.bool_(), pa.decimal128(9), pa.null(), PAIRS, pa.list_(pa.int64(), 2)),
    *(pa.list_(pa.string()), pa.list_(pa.bool_(), 3), pa.dictionary(pa.int8(), pa.string())),
    *(pa.struct([("x", PAIRS)]), pa.list_(pa.float32(), 0), pa.uuid()),
]


def _any_value(kind: pa.DataType, number: int) -> Any:
    if kind in TEXTS:
        return f"{number:03}".encode()
    if pa.types.is_null(kind):
        return None
    if kind == pa.uuid():
        return bytes([number] * 16)
    if pa.types.is_dictionary(kind) or kind == pa.string():
        return f"{number % 4}"
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        size = kind.list_size if pa.types.is_fixed_size_list(kind) else number % 3
        return [_any_value(kind.value_type, number + item) for item in range(size)]
    return number % 3 == 0 if kind == pa.bool_() else _value(kind, number)


@pytest.mark.parametrize("kind", [*PLAIN, *TEXTS, *OTHERS], ids=str)
@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("has_nulls", [False, True])
def test_rows_of_slices_in_any_order_equal_python(
    kind: pa.DataType, start: int, has_nulls: bool
) -> None:
    values = [_any_value(kind, number) for number in range(20)]
    if has_nulls:
        values[7] = None
    array = pa.array(values, kind)[start:]
    expected = array.to_pylist()
    few = [array[:5], array[5:5], array[5:6], array[6:]]
    for order in ([4, 0, 9, 9, 1], [], list(range(len(array)))):
        for chunks in ([array], few):
            found = in_order(chunks, np.array(order, np.int64))
            found.validate(full=True)
            assert found.type == kind
            assert found.to_pylist() == [expected[number] for number in order]
            (alone,) = in_orders(chunks, [np.array(order, np.int64)])
            alone.validate(full=True)
            assert alone.equals(found)
    orders = [np.array(each, np.int64) for each in ([3, 3], [16, 0], [])]
    several = [each.to_pylist() for each in in_orders(few, orders)]
    assert several == [[expected[number] for number in order] for order in orders]
    assert len(in_order([array[:0]], np.empty(0, np.int64))) == 0


def test_lists_with_null_items_in_any_order_equal_python() -> None:
    array = pa.array([[1, None], None, [3, 4], [None, 6]], pa.list_(pa.int64(), 2))
    for chunks in ([array], [array[:1], array[1:]]):
        found = in_order(chunks, np.array([3, 0, 1, 2, 2]))
        assert found.to_pylist() == [[None, 6], [1, None], None, [3, 4], [3, 4]]
        assert in_orders(chunks, [np.array([3, 0, 1, 2, 2])])[0].equals(found)


def test_rows_in_order_hold_no_bytes_of_others() -> None:
    texts = pa.array(["x" * 1000] * 100)
    parts = in_orders([texts, texts], [np.array([5, 150]), np.array([1])])
    assert [part.get_total_buffer_size() for part in parts] == [2000 + 3 * 4, 1000 + 2 * 4]


@pytest.mark.parametrize("kind", [pa.int64(), pa.list_(pa.int64(), 2), pa.string()], ids=str)
def test_rows_that_are_neighbours_share_memory_in_any_order(kind: pa.DataType) -> None:
    values = [_any_value(kind, number) for number in range(60)]
    chunks = [pa.array(values[:20], kind)[2:], pa.array(values[20:], kind)]
    rows = [row for chunk in chunks for row in chunk.to_pylist()]
    orders = [np.arange(start, end) for start, end in ((19, 40), (1, 18), (10, 30))]
    first, second, both = in_orders(chunks, orders)
    for found, order in zip((first, second, both), orders, strict=True):
        found.validate(full=True)
        assert found.to_pylist() == [rows[number] for number in order.tolist()]
        assert found.offset == 0

    def lies_in(found: pa.Array, chunk: pa.Array) -> bool:
        mine, all_of_it = found.buffers()[-1], chunk.buffers()[-1]
        return 0 <= mine.address - all_of_it.address <= all_of_it.size - mine.size

    assert [lies_in(first, chunks[1]), lies_in(second, chunks[0])] == [True, True]
    assert not any(lies_in(both, chunk) for chunk in chunks)
    again = in_orders(chunks, [np.arange(20, 40), np.arange(30, 50), np.arange(41, 58)])
    assert [lies_in(found, chunks[1]) for found in again] == [True, False, True]
    with pytest.raises(ValueError, match="row 58 of 58"):
        in_orders(chunks, [np.arange(42, 59)])


@pytest.mark.parametrize("has_nulls", [False, True])
def test_rows_of_large_chunks_in_any_order_equal_python(has_nulls: bool) -> None:
    values = [f"{number} " * 2000 for number in range(40)]
    values[7:8] = [None] if has_nulls else values[7:8]  # type: ignore[list-item]
    array, order = pa.array(values), np.random.default_rng(1).integers(0, 40, 100)
    found = in_order([array[:20], array[20:]], order)
    assert found.to_pylist() == [values[number] for number in order.tolist()]
