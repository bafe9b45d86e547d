"""Keys of a merge are found as a dictionary would find them."""

from __future__ import annotations

import datetime as dt
import random
from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.errors import UnsupportedError
from pennon.ops.merge_insert.keys import ABSENT, Keys, check_key
from tests.seeds import each_seed

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int16(), [0, 1, -5, 300]),
    "text": (pa.string(), ["", "a", "b", "ab"]),
    "bytes": (pa.large_binary(), [b"", b"\0", b"\0\0"]),
    "flag": (pa.bool_(), [True, False]),
    "day": (pa.date32(), [dt.date(1970, 1, 1), dt.date(2020, 2, 29)]),
    "money": (pa.decimal128(9, 2), [Decimal("1.10"), Decimal("-1.10")]),
    "float": (pa.float64(), [1.5, float("inf"), -2.0]),
}


def columns_of(rows: list[tuple[Any, ...]], kinds: list[pa.DataType]) -> list[pa.ChunkedArray]:
    """Return rows as columns of two chunks each."""
    half = len(rows) // 2
    return [
        pa.chunked_array([[row[n] for row in part] for part in (rows[:half], rows[half:])], kind)
        for n, kind in enumerate(kinds)
    ]


@each_seed(20)
def test_merge_keys_match_equal_values(seed: int) -> None:
    chance = random.Random(seed)
    chosen = chance.sample(list(VALUES.values()), chance.randint(1, 3))
    kinds = [kind for kind, _ in chosen]

    def rows(count: int) -> list[tuple[Any, ...]]:
        return [tuple(chance.choice([None, *vs]) for _, vs in chosen) for _ in range(count)]

    source, table = rows(chance.randint(0, 30)), rows(chance.randint(0, 40))
    keys = Keys.of(columns_of(source, kinds))
    by_key: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(source):
        by_key[row].append(number)
    numbers = keys.find(columns_of(table, kinds))
    places, sources = keys.pairs(numbers)
    expected = [
        (place, number)
        for place, row in enumerate(table)
        if None not in row
        for number in by_key.get(row, [])
    ]
    assert list(zip(places.tolist(), sources.tolist(), strict=True)) == expected
    assert len(keys) == len([row for row in by_key if None not in row])
    without = [number for number, row in enumerate(source) if None in row]
    assert np.flatnonzero(keys.numbers == ABSENT).tolist() == without


def test_nan_is_a_key_and_zeros_are_two() -> None:
    keys = Keys.of([pa.chunked_array([[0.0, float("nan")]])])
    found = keys.find([pa.chunked_array([[float("nan"), -0.0, 0.0]])])
    assert found.tolist() == [1, ABSENT, 0]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.int64(), pa.int32()])
def test_merge_keys_find_integers_at_type_bounds(kind: pa.DataType) -> None:
    bits, low = kind.bit_width, 0 if kind == pa.uint64() else -(1 << kind.bit_width - 1)
    high = (1 << bits) - 1 + low
    for known in ([5, 7, 6], [high, high - 5], [low, high], [low, low + 3]):
        keys = Keys.of([pa.chunked_array([known], kind)])
        wanted = [low, None, 5, 6, high, high - 5, low + 3, low + 1]
        found = keys.find([pa.chunked_array([wanted], kind)])
        expected = [known.index(n) if n in known else ABSENT for n in wanted]
        assert found.tolist() == expected


def test_dictionaries_are_their_values() -> None:
    keys = Keys.of([pa.chunked_array([pa.array(["b", "a"]).dictionary_encode()])])
    found = keys.find([pa.chunked_array([pa.array(["a", "c", "b"]).dictionary_encode()])])
    assert found.tolist() == [1, ABSENT, 0]


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.struct([("x", pa.int8())])])
def test_merge_keys_of_nested_types_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="plain values"):
        check_key("k", kind)
