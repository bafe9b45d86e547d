"""Allowed casts between types, and their values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pennon.errors import ArgumentError
from pennon.ops.columns.casts import can_cast, cast_column


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int8(), pa.uint64()),
        (pa.float64(), pa.float16()),
        (pa.timestamp("us"), pa.date32()),
        (pa.string(), pa.large_string()),
        (pa.large_binary(), pa.binary()),
        (pa.decimal128(10, 2), pa.decimal256(20, 2)),
        (pa.list_(pa.int8()), pa.large_list(pa.int64())),
        (pa.list_(pa.int8(), 4), pa.list_(pa.int16(), 4)),
        (pa.list_(pa.int8(), 4), pa.list_(pa.int16())),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
    ],
)
def test_casts_between_types_of_one_kind_are_allowed(old: pa.DataType, new: pa.DataType) -> None:
    assert can_cast(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int8(), pa.string()),
        (pa.string(), pa.int8()),
        (pa.float32(), pa.int32()),
        (pa.int32(), pa.bool_()),
        (pa.string(), pa.binary()),
        (pa.list_(pa.int8(), 4), pa.list_(pa.int8(), 3)),
        (pa.list_(pa.int8()), pa.list_(pa.string())),
        (pa.list_(pa.int8()), pa.int8()),
        (pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int16())])),
    ],
)
def test_casts_between_types_of_different_kinds_are_refused(
    old: pa.DataType, new: pa.DataType
) -> None:
    assert not can_cast(old, new)


@pytest.mark.parametrize(
    ("values", "old", "new"),
    [
        ([1, None, -3], pa.int64(), pa.int8()),
        (["a", None, ""], pa.string(), pa.large_string()),
        ([[1], None, [], [None]], pa.list_(pa.int32()), pa.list_(pa.int64())),
        ([{"a": 1, "b": "x"}, None], pa.struct([("a", pa.int8()), ("b", pa.string())]),
         pa.struct([("A", pa.int64()), ("b", pa.string())])),
        ([[{"a": 1}], None, [None]], pa.list_(pa.struct([("a", pa.int8())])),
         pa.list_(pa.struct([("a", pa.int16())]))),
    ],
)  # fmt: skip
def test_cast_keeps_values_and_nulls(values: list[Any], old: pa.DataType, new: pa.DataType) -> None:
    array: pa.Array[Any] = pa.array([None, *values, None], old).slice(1, len(values))
    cast = cast_column(array, new, "c")
    cast.validate(full=True)
    assert cast.type == new
    shown = [_lower(each) for each in cast.to_pylist()]
    assert shown == values


def _lower(value: Any) -> Any:
    return {key.lower(): each for key, each in value.items()} if isinstance(value, dict) else value


def test_cast_of_times_truncates_to_the_unit() -> None:
    array = pa.array([1_700_000_000_123_456], pa.timestamp("us"))
    cast = cast_column(array, pa.timestamp("ms"), "c")
    assert cast == pa.array([1_700_000_000_123], pa.timestamp("ms"))


@pytest.mark.parametrize(
    ("value", "old", "new"),
    [
        (1000, pa.int64(), pa.int8()),
        (-1, pa.int64(), pa.uint64()),
        (2**62, pa.timestamp("s"), pa.timestamp("ns")),
        ([300], pa.list_(pa.int64()), pa.list_(pa.int8())),
    ],
)
def test_cast_of_values_out_of_range_is_refused(
    value: Any, old: pa.DataType, new: pa.DataType
) -> None:
    with pytest.raises(ArgumentError, match=r"Can't cast.*column 'c'"):
        cast_column(pa.array([value], old), new, "c")
