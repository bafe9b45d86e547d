"""The order of values in indices, and sorted runs that are merged: reference index-scalar, 2.2."""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.index.base import Values
from pennon.index.order import least_and_greatest, merged, order_of, rows_of, starts_of_equal

NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000000))[0]


def in_order(values: pa.Array[Any]) -> list[Any]:
    found: list[Any] = values.take(pa.array(order_of(values))).to_pylist()
    return found


def test_floats_are_in_total_order() -> None:
    values = pa.array([1.5, float("nan"), None, 0.0, -0.0, float("inf"), -1.0, NEGATIVE_NAN])
    found = in_order(values)
    assert [str(each) for each in found] == [
        "None",
        "nan",
        "-1.0",
        "-0.0",
        "0.0",
        "1.5",
        "inf",
        "nan",
    ]
    assert struct.pack("<d", found[1]) == struct.pack("<d", NEGATIVE_NAN)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float16(), [-0.0, 0.0, 2.0]),
        (pa.float32(), [-1.0, 0.5]),
        (pa.int8(), [-128, 0, 127]),
        (pa.uint64(), [0, 1 << 63]),
        (pa.string(), ["", "B", "a", "é"]),
        (pa.large_string(), ["a", "aa"]),
        (pa.binary(), [b"", b"\x00", b"\xff"]),
        (pa.binary(2), [b"ab", b"ac"]),
        (pa.bool_(), [False, True]),
        (pa.date32(), [dt.date(1960, 1, 1), dt.date(2020, 1, 1)]),
        (pa.timestamp("us"), [dt.datetime(1960, 1, 1), dt.datetime(2020, 1, 1)]),
        (pa.duration("s"), [dt.timedelta(-1), dt.timedelta(1)]),
        (pa.decimal128(10, 2), [decimal.Decimal("-1.25"), decimal.Decimal("3.5")]),
    ],
)
def test_values_ascend_after_nulls(kind: pa.DataType, values: list[Any]) -> None:
    shuffled = pa.array([*reversed(values), None, *values, None], kind)
    twice = [each for value in values for each in (value, value)]
    assert in_order(shuffled) == [None, None, *twice]
    placed = shuffled.take(pa.array(order_of(shuffled)))
    assert starts_of_equal(placed).tolist() == list(range(0, len(shuffled), 2))
    assert [each.as_py() for each in least_and_greatest(pa.array(values, kind))] == [
        values[0],
        values[-1],
    ]


def test_order_of_equal_values_is_stable() -> None:
    values = pa.array([2, 1, 2, None, 1, None])
    assert order_of(values).tolist() == [3, 5, 1, 4, 0, 2]


@given(st.lists(st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=12), max_size=4))
def test_merged_runs_are_in_order(runs: list[list[int | None]]) -> None:
    blocks = []
    for number, run in enumerate(runs):
        rows = np.arange(len(run), dtype=np.uint64) + np.uint64(100 * number)
        values = Values(pa.array(run, pa.int64()), rows)
        whole = rows_of(values, order_of(values.values))
        places = np.arange(len(run))
        blocks.append([rows_of(whole, places[at : at + 3]) for at in range(0, len(run), 3)])
    found = list(merged([iter(each) for each in blocks]))
    pairs = [
        (value, row)
        for part in found
        for value, row in zip(part.values.to_pylist(), part.rows.tolist(), strict=True)
    ]
    wanted = [(v, 100 * n + at) for n, run in enumerate(runs) for at, v in enumerate(run)]
    assert sorted(pairs, key=str) == sorted(wanted, key=str)
    assert [v for v, _ in pairs] == sorted(
        (v for v, _ in pairs), key=lambda v: -1 if v is None else v
    )
