"""JSONB against bytes that pylance 14.0.2 wrote, and against damage."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from pennon.encoding.jsonb import decode_jsonb, encode_jsonb, json_stored, json_text
from pennon.errors import ArgumentError, FormatError, LanceError

WRITTEN = [
    ("null", "2000000000000000"),
    ("true", "2000000040000000"),
    ("false", "2000000030000000"),
    ("0", "200000002000000100"),
    ("-1", "200000002000000240ff"),
    ("128", "20000000200000025080"),
    ("-200", "200000002000000340ff38"),
    ("18446744073709551615", "200000002000000950ffffffffffffffff"),
    ("-9223372036854775808", "2000000020000009408000000000000000"),
    ("1e-7", "2000000020000009603e7ad7f29abcaf48"),
    ("1e+20", "2000000020000009604415af1d78b58c40"),
    ("-0.0", "2000000020000009608000000000000000"),
    ('""', "2000000010000000"),
    ('"é\\n\\"\\u0001\\\\/"', "2000000010000007c3a90a22015c2f"),
    ("[]", "80000000"),
    ("{}", "40000000"),
    (
        '[1,"a",null,[true]]',
        "80000004200000021000000100000000500000085001618000000140000000",
    ),
    (
        '{"a":{"c":[]},"aa":2,"b":1}',
        (
            "4000000310000001100000021000000150000011200000022000000261616162"
            "400000011000000150000004638000000050025001"
        ),
    ),
]


@pytest.mark.parametrize(("text", "stored"), WRITTEN)
def test_jsonb_bytes_equal_those_of_pylance(text: str, stored: str) -> None:
    assert decode_jsonb(bytes.fromhex(stored)) == text
    assert encode_jsonb(text).hex() == stored


def test_jsonb_arrays_round_trip_with_nulls() -> None:
    text = pa.array(['{"b": 1, "a": 2}', None])
    assert json_text(json_stored(text)).to_pylist() == ['{"a":2,"b":1}', None]


@pytest.mark.parametrize("text", ["", "{", "nul", "1" + "0" * 400, "[" * 200 + "]" * 200])
def test_encode_jsonb_refuses_invalid_json(text: str) -> None:
    with pytest.raises(ArgumentError, match="not JSON"):
        encode_jsonb(text)


def test_jsonb_nesting_is_bounded() -> None:
    data = b"\x80\x00\x00\x00"
    for _ in range(200):
        data = b"\x80\x00\x00\x01" + (0x50000000 | len(data)).to_bytes(4, "big") + data
    with pytest.raises(FormatError, match="nested"):
        decode_jsonb(data)


def test_damaged_jsonb_raises_typed_error_or_decodes() -> None:
    chance = random.Random(3)
    for _, stored in WRITTEN:
        for _ in range(100):
            data = bytearray.fromhex(stored)
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            try:
                decode_jsonb(bytes(data[: chance.randint(0, len(data))]))
            except LanceError:
                continue
