"""Filters and takes of slices, against lists of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.selection import keep, keep_rows, reorder, take

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


@pytest.mark.parametrize("kind", [*PLAIN, pa.bool_(), pa.string(), pa.binary(3), PAIRS], ids=str)
@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("has_nulls", [False, True])
def test_reorder_of_slices_equals_python(kind: pa.DataType, start: int, has_nulls: bool) -> None:
    values: list[Any] = [_value(kind, number) for number in range(20)]
    if kind in (pa.string(), pa.binary(3)):
        values = [f"{number:03}" for number in range(20)]
    elif kind == pa.bool_():
        values = [number % 3 == 0 for number in range(20)]
    if has_nulls:
        values[7] = None
    array = pa.array(values, kind)[start:]
    for order in ([4, 0, 9, 9, 1], [], list(range(len(array)))):
        found = reorder(array, np.array(order, np.int64))
        assert found.type == kind
        assert found.to_pylist() == [array[number].as_py() for number in order]
    assert len(reorder(array[:0], np.empty(0, np.int64))) == 0
