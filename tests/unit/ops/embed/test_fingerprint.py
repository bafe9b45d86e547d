"""Fingerprints of texts and binary values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pennon.errors import ColumnTypeError
from pennon.ops.embed.fingerprint import differ, fingerprints, plain_values

EMPTY = -1205034819632174695  # xxHash64 of no bytes, seed 0: 0xef46db3751d8e999
A = 0xD24EC4F1A98C6E5B - (1 << 64)  # of b"a"


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str
)
def test_fingerprints_are_the_xxhash64_of_the_bytes_and_null_of_null(kind: pa.DataType) -> None:
    values: pa.Array[Any] = pa.array(["x", "a", None, ""]).cast(kind).slice(1)
    assert fingerprints(values).to_pylist() == [A, None, EMPTY]


@pytest.mark.parametrize("values", [[], [None], [""], [None, ""]])
def test_fingerprints_of_arrays_without_a_byte(values: list[Any]) -> None:
    expected = [None if each is None else EMPTY for each in values]
    assert fingerprints(pa.array(values, pa.string())).to_pylist() == expected


def test_fingerprints_differ_where_values_or_nulls_do() -> None:
    one, other = pa.array([1, 1, None, None, 0]), pa.array([1, 2, None, 0, None])
    assert differ(one, other).tolist() == [False, True, False, True, True]


def test_plain_values_of_a_dictionary_are_texts() -> None:
    values: pa.Array[Any] = pa.array(["a", None, "a"]).dictionary_encode()
    assert plain_values(values, "t").to_pylist() == ["a", None, "a"]


def test_plain_values_of_numbers_are_refused() -> None:
    with pytest.raises(ColumnTypeError, match="column 'n' is int64"):
        plain_values(pa.array([1]), "n")
