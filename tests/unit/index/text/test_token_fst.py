"""Tokens as a transducer, byte by byte: reference index-scalar, 13.4."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.errors import FormatError
from pennon.index.kernels.text.crc32c import crc32c
from pennon.index.text.token_fst import TokenFst, write_fst
from pennon.index.text.token_set import FstTokens, TableTokens

TOKENS = st.dictionaries(st.text("abcé日", max_size=5), st.integers(0, 1 << 40), max_size=60)


def whole(nodes: str, keys: int, root: int) -> bytes:
    """Return a transducer: version 3, type 0, nodes from byte 16 on, keys, root, checksum."""
    data = struct.pack("<QQ", 3, 0) + bytes.fromhex(nodes) + struct.pack("<QQ", keys, root)
    checksum = crc32c(np.frombuffer(data, np.uint8))
    return data + struct.pack("<I", ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def test_the_checksum_is_crc_32c() -> None:
    assert crc32c(np.frombuffer(b"123456789", np.uint8)) == 0xE3069283


def test_nodes_of_each_kind() -> None:
    """Keys "tt" = 5, "z" = 7 and "zq" = 8.

    ====  ==============  ====================================================================
    16    05 01 81        one way: common byte 1 ('t'), O = 1: output 5, T = 0: delta 0, the end
    19    c1              one way: 't' again, no output, to the node just before, at 18
    20    08 71 00        any node, first half: one output 8 of the way 'q', ...
    ====  ==============  ====================================================================
    """
    # the node "t.": output 5 | sizes 01 | state 10000001: 't'
    one = "05 01 81"
    # the node "z.": final output 7 | output of its way 1 | input 'q' | sizes 01 | state 01000001
    other = "07 08 71 01 41"
    # root: deltas of z, t | inputs z, t | sizes 10 | state 2 ways; it begins at 24
    root = "01 06 7a 74 10 02"
    fst = TokenFst(whole(one + other + root, 3, 29))
    assert list(fst.items()) == [(b"tt", 5), (b"z", 7), (b"zq", 8)]
    assert fst.find(b"zq") == 8
    assert fst.find(b"t") is None
    assert fst.find(b"zz") is None


def test_fst_transition_to_the_node_before() -> None:
    """Node 18 ends in 'a' (common byte 5), the next one has one byte: 'b' of its own, no sizes."""
    # 16: 09 01 85  "a" = 9; 19: 78 c0 "x" to the node before, whose last byte is 18
    fst = TokenFst(whole("09 01 85 78 c0", 1, 20))
    assert list(fst.items()) == [(b"xa", 9)]


@given(TOKENS)
def test_fst_round_trip(tokens: dict[str, int]) -> None:
    items = sorted((token.encode(), number) for token, number in tokens.items())
    fst = TokenFst(write_fst(items))
    assert list(fst.items()) == items
    assert all(fst.find(key) == number for key, number in items)


@pytest.mark.parametrize("keys", [[b"b", b"a"], [b"a", b"a"], [b"ab", b"a"], [b"ab", b"aa"]])
def test_fst_with_unordered_keys_is_refused(keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match="ascend"):
        write_fst((key, 0) for key in keys)


def test_fst_transition_delta_has_one_byte_at_least() -> None:
    """Pylance reads no numbers of no bytes, F-482: the root would be `61 00 01` otherwise."""
    data = write_fst([(b"a", 0)])
    assert data[16:-20].hex() == "00611001"


def test_fst_node_with_256_transitions() -> None:
    items = [(bytes([each]), each + 1) for each in range(256)]
    assert list(TokenFst(write_fst(items)).items()) == items


def test_fst_with_wrong_version_or_checksum_is_refused() -> None:
    with pytest.raises(FormatError, match="not hold a transducer of version 3"):
        TokenFst(b"\2" + bytes(60))
    data = bytearray(write_fst([(b"a", 1)]))
    data[18] ^= 1
    with pytest.raises(FormatError, match="do not have their checksum"):
        TokenFst(bytes(data))


@pytest.mark.parametrize("nodes", ["f8 10 82", "ff ff ff 88 3f", "00 00 05", "99 c1"])
def test_fst_nodes_outside_the_bytes_are_refused(nodes: str) -> None:
    data = whole(nodes, 1, 16 + len(bytes.fromhex(nodes)) - 1)
    with pytest.raises(FormatError, match=r"node|tokens"):
        list(TokenFst(data).items())


def edits(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for at, a in enumerate(one, 1):
        last, row[0] = row[0], at
        for place, b in enumerate(other, 1):
            last, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, last + (a != b))
    return row[-1]


@given(TOKENS, st.text("abcé日", min_size=1, max_size=5), st.integers(1, 2), st.integers(0, 2))
def test_fst_tokens_within_edit_distance(
    tokens: dict[str, int], word: str, distance: int, prefix: int
) -> None:
    items = sorted((token.encode(), number) for token, number in tokens.items())
    expected = [
        (token, tokens[token])
        for token in (key.decode() for key, _ in items)
        if edits(word, token) <= distance and token.startswith(word[:prefix])
    ]
    assert list(FstTokens(write_fst(items)).near(word, distance, prefix, 99)) == expected
    numbers = np.array(list(tokens.values()), np.uint64)
    table = TableTokens(pa.array(list(tokens), pa.large_string()), numbers)
    assert list(table.near(word, distance, prefix, 99)) == expected
    assert list(FstTokens(write_fst(items)).near(word, distance, prefix, 2)) == expected[:2]
    assert list(table.near(word, distance, prefix, 2)) == expected[:2]
    assert all(table.find(token) == number for token, number in tokens.items())
    assert table.find("nobody") is None


@given(TOKENS, st.data())
def test_damaged_fst_raises_format_error_or_parses(
    tokens: dict[str, int], data: st.DataObject
) -> None:
    """Whatever the bytes of nodes are, walks end, in keys or in an error."""
    made = bytearray(write_fst(sorted((key.encode(), value) for key, value in tokens.items())))
    nodes = len(made) - 36
    for _ in range(data.draw(st.integers(1, 4))):
        at = 16 + data.draw(st.integers(0, max(nodes - 1, 0)))
        made[at] = data.draw(st.integers(0, 255))
    checksum = crc32c(np.frombuffer(bytes(made[:-4]), np.uint8))
    masked = ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
    made[-4:] = struct.pack("<I", masked)
    fst = TokenFst(bytes(made))
    for walk in (fst.items, lambda: fst.find(b"ab"), lambda: fst.near("ab", 1, 0, 50)):
        try:
            walk()
        except FormatError as error:
            assert "tokens of a full-text index" in str(error)  # noqa: PT017
