"""Strings that have a text in them, or are it, against Python's own search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pennon.expr.kernels.range_search import find_equal_strings, find_in_strings


def search(strings: list[bytes], wanted: bytes, kind: type[np.int32 | np.int64]) -> list[bool]:
    lengths = [0, *map(len, strings)]
    data = np.frombuffer(b"".join(strings), np.uint8)
    bits = find_in_strings(data, np.cumsum(lengths).astype(kind), np.frombuffer(wanted, np.uint8))
    assert len(bits) == -(-len(strings) // 8)
    offsets: np.ndarray = np.cumsum(lengths).astype(kind)
    same = find_equal_strings(data, offsets, np.frombuffer(wanted, np.uint8))
    assert same.tolist() == [at for at, one in enumerate(strings) if one == wanted]
    return [bool(one) for one in np.unpackbits(bits, count=len(strings), bitorder="little")]


@given(
    st.lists(st.lists(st.sampled_from([b"a", b"b", b"ab", b"c" * 61]), max_size=9).map(b"".join)),
    st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=5).map(b"".join),
    st.sampled_from([np.int32, np.int64]),
)
@example([b"xa", b"bx", b"", b"ab"], b"ab", np.int32)  # a text that lies over two strings
@example([b"c" * 130 + b"ab", b"c" * 64 + b"a", b"b"], b"ab", np.int64)
@example([b"a" * 100], b"a" * 101, np.int32)
@example([b"ab", b"cb", b"", b"ab", b"b"], b"ab", np.int32)
def test_string_search_equals_python(
    strings: list[bytes], wanted: bytes, kind: type[np.int32 | np.int64]
) -> None:
    assert search(strings, wanted, kind) == [wanted in one for one in strings]


@pytest.mark.parametrize(
    ("offsets", "wanted"),
    [([0, 4], b"a"), ([-1, 2], b"a"), ([0, 3, 1], b"a"), ([], b"a"), ([0, 3], b"")],
)
def test_string_search_with_wrong_offsets_or_empty_text_is_refused(
    offsets: list[int], wanted: bytes
) -> None:
    data = np.frombuffer(b"abc", np.uint8)
    for find in (find_in_strings, find_equal_strings):
        with pytest.raises(ValueError, match=r"offsets|empty"):
            find(data, np.array(offsets, np.int32), np.frombuffer(wanted, np.uint8))
