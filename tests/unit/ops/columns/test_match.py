"""Rows found by keys."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from pennon.errors import NoDataError, SchemaMismatchError, UnsupportedError
from pennon.ops.columns.match import LEAST_KEYS, MOST_KEYS, RightSide


def _right(keys: list[Any], values: list[Any]) -> RightSide:
    table = pa.table({"k": keys, "v": values})
    return RightSide.read(table.to_reader(max_chunksize=2), "k")


def test_match_takes_the_last_row_of_a_key_including_null() -> None:
    right = pickle.loads(pickle.dumps(_right([3, 1, None, 3], ["a", "b", "c", "d"])))
    places = right.find(pa.array([1, 2, 3, None, 3]))
    assert places.to_pylist() == [1, None, 3, 2, 3]
    assert right.rows(places)["v"].to_pylist() == ["b", None, "d", "c", "d"]


def test_match_of_zero_keys() -> None:
    right = _right(["x"], [1])
    assert right.rows(right.find(pa.array([], pa.string())))["v"].to_pylist() == []


def test_match_with_invalid_keys_is_refused() -> None:
    with pytest.raises(NoDataError):
        _right([], [])
    with pytest.raises(NoDataError):
        RightSide.read(pa.table({"k": [1]}).to_reader(), "k")
    right = _right([[1]], [1])
    with pytest.raises(UnsupportedError):
        right.find(pa.array([[1]]))
    with pytest.raises(SchemaMismatchError, match="column 'a'"):
        right.check_keys(pa.int8(), "a")


def test_match_looks_up_fewer_keys_of_wide_rows() -> None:
    narrow = _right(list(range(100)), list(range(100)))
    wide = _right(list(range(100)), [b"x" * 10_000] * 100)
    assert narrow.keys_at_once == MOST_KEYS
    assert wide.keys_at_once == LEAST_KEYS
