"""Words of texts, numbered."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.index.kernels.text.text_words import WordTable

LETTERS = "abcdeé日🦊²"
BITS = np.zeros(0x110000, np.bool_)
BITS[[ord(each) for each in LETTERS]] = True
CLASSES = np.packbits(BITS, bitorder="little")
TEXT = st.text(LETTERS + " .\u0301\U0010ffff", max_size=30)


def split(table: WordTable, texts: list[bytes]) -> list[list[bytes]]:
    """Return the words of texts, and check that each has one number."""
    data = np.frombuffer(b"--" + b"".join(texts), np.uint8)
    ends = np.cumsum([2, *map(len, texts)]).astype(np.int64)
    words = np.empty(sum((len(each) + 1) // 2 for each in texts) + len(texts) + 1, np.uint32)
    counts = np.empty(len(texts), np.uint32)
    count = table.split(data, ends, CLASSES, words, counts)
    assert count == counts.sum()
    found, start = [], 0
    for each in counts.tolist():
        found.append([table.word(int(number)) for number in words[start : start + each]])
        start += each
    return found


@given(st.lists(st.lists(TEXT, max_size=9), max_size=4))
def test_word_table_splits_as_a_regular_expression(batches: list[list[str]]) -> None:
    table, known = WordTable(), set()
    for texts in batches:
        expected = [re.findall(f"[{LETTERS}]+", each) for each in texts]
        found = split(table, [each.encode() for each in texts])
        assert [[word.decode() for word in each] for each in found] == expected
        known |= {word for each in expected for word in each}
    assert len(table) == len(known)
    assert {table.word(number).decode() for number in range(len(table))} == known
    assert table.size_bytes > 0
    with pytest.raises(IndexError, match="no word"):
        table.word(len(known))


def test_word_table_of_many_words() -> None:
    table = WordTable()
    texts = [f"{'abcde'[n % 5]}{'é' * (n // 5)}".encode() for n in range(500)]
    table_of_long = split(table, texts * 3)
    assert table_of_long == [[each] for each in texts * 3]
    assert len(table) == 500


def test_word_table_splits_at_invalid_utf8() -> None:
    broken = [b"ab\xffcd", b"a\xe6\x97", b"\xe6a", b"\xf0\x9f\xa6 b", b"\xed\xa0\x80c", b"\xc3"]
    assert split(WordTable(), broken) == [[b"ab", b"cd"], [b"a"], [b"a"], [b"b"], [b"c"], []]


def test_word_table_split_refuses_arrays_that_do_not_fit() -> None:
    table, data = WordTable(), np.frombuffer(b"ab cd", np.uint8)
    words, counts = np.empty(9, np.uint32), np.empty(1, np.uint32)

    def fails(ends: list[int], words: np.ndarray, classes: np.ndarray) -> None:
        with pytest.raises(ValueError, match="no room for their words"):
            table.split(data, np.array(ends, np.int64), classes, words, counts)

    fails([0, 6], words, CLASSES)
    fails([-1, 3], words, CLASSES)
    fails([3, 0], words, CLASSES)
    fails([0, 3, 5], words, CLASSES)
    fails([0, 5], words[:3], CLASSES)
    fails([0, 5], words, CLASSES[:-1])
    assert table.split(data, np.array([0, 5], np.int64), CLASSES, words, counts) == 2
