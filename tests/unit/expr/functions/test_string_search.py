"""LIKE '%text%' and contains(): as Arrow's own, for every layout of strings; and words, by contains_tokens()."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pennon.expr.functions.registry import find_function
from pennon.expr.functions.string_search import contained, contains

TEXTS = ["", "ab", None, "xaby", "a", "bxa", "ba" * 70 + "ab", "日本ab", None, "AB"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("wanted", ["ab", "本a", "a", "", "nowhere"])
def test_contains_equals_arrow(kind: pa.DataType, wanted: str) -> None:
    values = pa.array(TEXTS, kind)
    for part in (values, values[3:], values[2:9], values[:0]):
        assert contains(part, wanted).equals(
            pc.match_substring(pa.array(part, pa.string()), wanted)
        )


def test_bytes_and_scalars() -> None:
    values = pa.array([b"\x00\xff", None, b"\xff\x00"], pa.binary())
    assert contains(values, b"\x00\xff").to_pylist() == [True, None, False]
    assert contains(pa.scalar("cab"), "ab").as_py() is True


@pytest.mark.parametrize(
    ("pattern", "inside"),
    [
        ("%ab%", "ab"),
        ("%a%b%", None),
        ("ab%", None),
        (r"%a\%%", None),
        ("%%", None),
        ("%a_%", None),
    ],
)
def test_like_pattern_with_one_contained_text(pattern: str, inside: str | None) -> None:
    assert contained(pattern) == inside


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("fox the", [True, None, False, False, True]),
        ("the-FOX", [False, None, False, True, False]),
        ("fox fox", [True, None, True, False, True]),
        ("हिन्दी", [False, None, True, False, False]),  # its vowel signs are parts of the word
        (" ,;", [True, None, True, True, True]),
        ("ox", [False, None, False, False, False]),
    ],
)
def test_contains_tokens_matches_whole_words(
    kind: pa.DataType, wanted: str, expected: list[bool | None]
) -> None:
    texts = ["the quick fox", None, "foxes fox हिन्दी", "FOX,the!", "_fox_ box.the"]
    run = find_function("contains_tokens").run
    values = pa.array(texts, kind)
    assert run(values, pa.scalar(wanted)).to_pylist() == expected
    assert run(values[2:], pa.scalar(wanted)).to_pylist() == expected[2:]
    assert run(pa.scalar(texts[0]), pa.scalar(wanted)).as_py() is expected[0]
    # words of each row's own
    assert run(values, pa.array([wanted] * 4 + [None])).to_pylist() == [*expected[:4], None]
