"""Detection of arrays with one value; values under NULLs are ignored."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.v2_1.leaf_values import leaf_values
from pennon.encoding.v2_1.one_value import OneValue, find_one_value


def find(array: pa.Array) -> OneValue | None:
    return find_one_value(array, leaf_values(array))


ONES = {
    "number": (pa.array([7, 7, 7]), (b"\7" + bytes(7),)),
    "number, NULL first": (pa.array([None, 7, None, 7], pa.int8()), (b"\7",)),
    "a slice": (pa.array([1, 7, 7, 2], pa.int8()).slice(1, 2), (b"\7",)),
    "true": (pa.array([True, None, True]), (b"\1",)),
    "false": (pa.array([False, None]), (b"\0",)),
    "decimal": (pa.array([1, None, 1]).cast(pa.decimal128(20, 0)), (b"\1" + bytes(15),)),
    "binary": (pa.array([b"abc", None, b"abc"], pa.binary(3)), (b"abc",)),
    "text": (pa.array(["ab", None, "ab"]), (np.array([0, 2], "<i4").tobytes(), b"ab")),
    "large": (pa.array(["", ""], pa.large_string()), (bytes(16), b"")),
}


@pytest.mark.parametrize("name", ONES)
def test_one_value_is_found_in_constant_arrays(name: str) -> None:
    array, buffers = ONES[name]
    found = find(array)
    assert found is not None
    assert found.buffers == buffers


MORE = {
    "the last": pa.array([7] * 99 + [8]),
    "in the middle": pa.array([7] * 50 + [8] + [7] * 50),
    "bits": pa.array([True] * 99 + [False]),
    "wide": pa.array([7] * 99 + [8]).cast(pa.decimal128(20, 0)),
    "wide, NULL": pa.array([None] + [7] * 99 + [8]).cast(pa.decimal128(20, 0)),
    "sizes": pa.array(["a"] * 99 + ["aa"]),
    "letters": pa.array(["ab"] * 50 + ["ba"] + ["ab"] * 50),
    "empty or not": pa.array(["", None, "a"]),
    "lists": pa.array([[1, 1]] * 3, pa.list_(pa.int8(), 2)),
    "a dictionary": pa.array(["a", "a"]).dictionary_encode(),
}


@pytest.mark.parametrize("name", MORE)
def test_one_value_is_absent_in_other_arrays(name: str) -> None:
    assert find(MORE[name]) is None
