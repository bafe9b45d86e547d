"""From texts to tokens: reference index-scalar, 14."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pennon.errors import ArgumentError, FormatError, UnsupportedError
from pennon.index.text.documents import Reader
from pennon.index.text.parameters import TextParameters
from pennon.index.text.tokenizer import Tokenizer

PLAIN: dict[str, Any] = {"stem": False, "remove_stop_words": False}


def tokens(text: str, **settings: Any) -> list[str]:
    return Tokenizer(TextParameters(**settings)).tokens(text)


def test_tokenizer_steps_run_in_order() -> None:
    text = "The Quick-Foxes were running à Paris, " + "x" * 39 + " " + "y" * 40
    assert tokens(text) == ["quick", "fox", "run", "a", "pari", "x" * 39]


def test_token_positions_count_removed_stop_words() -> None:
    placed = Tokenizer(TextParameters()).placed("quick the fox")
    assert placed == [("quick", 0), ("fox", 2)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't 3.14 jump_over", ["don", "t", "3", "14", "jump", "over"]),
        ("x² ½ ℃", ["x2", "12"]),
        ("日本語テキスト", ["日本語テキスト"]),
        ("e\u0301te\u0301 हिन्दी", ["e", "te", "हिन", "दी"]),
        ("ΟΔΟΣ İ", ["οδοσ", "i\u0307"]),
        ("Straße Æther", ["strasse", "aether"]),
        ("a\U0001f600b", ["a", "b"]),
    ],
)
def test_simple_tokenizer_splits_words(text: str, expected: list[str]) -> None:
    assert tokens(text, **PLAIN) == expected


@pytest.mark.parametrize(
    ("settings", "text", "expected"),
    [
        ({"base_tokenizer": "whitespace"}, "a\tb\x0bc\u00a0d e", ["a", "b\x0bc d", "e"]),
        ({"base_tokenizer": "raw"}, "A b", ["a b"]),
        (
            {"base_tokenizer": "ngram", "min_ngram_length": 2},
            "abcd",
            ["ab", "abc", "bc", "bcd", "cd"],
        ),
        ({"base_tokenizer": "ngram", "prefix_only": True}, "abcd", ["abc"]),
        ({"base_tokenizer": "code"}, "fooBar a_b += x", ["foobar", "a_b", "x"]),
        ({"base_tokenizer": "code", "index_operators": True}, "a'->b;", ["a", "->", "b"]),
        (
            {"base_tokenizer": "code", "split_identifiers": True, "split_on_numerics": True},
            "HTTPServer2 __init__",
            ["http", "server", "2", "__init__"],
        ),
        (
            {"base_tokenizer": "code", "split_identifiers": True, "split_on_numerics": True},
            "x² y2",
            ["x2", "y", "2"],
        ),
        ({"custom_stop_words": ("fox",)}, "the fox", ["the"]),
        ({"lower_case": False, "ascii_folding": False}, "Été", ["Été"]),
        ({"max_token_length": None}, "y" * 50, ["y" * 50]),
    ],
)
def test_tokenizer_settings(settings: dict[str, Any], text: str, expected: list[str]) -> None:
    stops = {"remove_stop_words": True} if "custom_stop_words" in settings else {}
    assert tokens(text, **(PLAIN | settings | stops)) == expected


def test_a_word_and_its_parts_have_one_position() -> None:
    settings: dict[str, Any] = {"base_tokenizer": "code", "split_identifiers": True}
    settings["preserve_original"] = True
    placed = Tokenizer(TextParameters(**PLAIN, **settings)).placed("fooBar x")
    assert placed == [("foobar", 0), ("foo", 0), ("bar", 1), ("x", 2)]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("English", "generously", "generous"),
        ("German", "häuser", "haus"),
        ("Russian", "книгами", "книг"),
        ("Tamil", "புத்தகங்கள்", "புததகம"),
    ],
)
def test_tokenizer_stems_by_language(language: str, text: str, expected: str) -> None:
    found = Tokenizer(TextParameters(language=language)).tokens(text)
    assert "".join(found) == expected or language == "Tamil"


def test_unknown_tokenizers_and_stemmers_are_refused() -> None:
    for name in ("icu", "jieba/default", "lindera/ipadic", "xx"):
        with pytest.raises(
            UnsupportedError, match=f"the tokenizer '{name}' .* one of simple, "
        ) as it:
            Tokenizer(TextParameters(base_tokenizer=name))
        assert isinstance(it.value, OSError)
        assert isinstance(it.value, ValueError)
    with pytest.raises(UnsupportedError, match="no stemmer of the language 'english'"):
        Tokenizer(TextParameters(language="english"))


def test_text_parameters_round_trip() -> None:
    given = TextParameters(language="German", custom_stop_words=("der",), max_token_length=None)
    made = TextParameters.parse(given.to_json().encode())
    assert made.custom_stop_words == ("der",)
    assert made.max_token_length is None
    assert TextParameters.parse(b"{}") == TextParameters()


@pytest.mark.parametrize(
    "text",
    [b"[]", b"{", b'{"stem": 1}', b'{"max_token_length": -1}', b'{"custom_stop_words": [1]}'],
)
def test_invalid_text_parameters_are_refused(text: bytes) -> None:
    with pytest.raises(FormatError, match="parameters of a full-text index"):
        TextParameters.parse(text)


def documents(values: pa.Array, **settings: Any) -> list[tuple[int, int, list[tuple[str, int]]]]:
    reader = Reader(TextParameters(**PLAIN), **settings)
    return [(each.row, each.item, each.tokens) for each in reader.documents(values)]


def test_lists_are_one_document_or_many() -> None:
    values = pa.array([["quick fox", None, "dog"], None, [], ["!"]], pa.list_(pa.string()))
    assert documents(values) == [(0, 0, [("quick", 0), ("fox", 1), ("dog", 2)])]
    by_item = [(0, 0, [("quick", 0), ("fox", 1)]), (0, 2, [("dog", 0)])]
    assert documents(values, by_item=True) == by_item


def test_leaves_of_json() -> None:
    text = '{"n": 1e5, "b": {"c": "two Words", "l": [2.50, true, null]}, "e": {}}'
    ((_, _, found),) = documents(pa.array([text]), is_json=True)
    assert found == [
        ("b.c,str,two", 0),
        ("b.c,str,words", 1),
        ("b.l,number,2.50", 2),
        ("b.l,bool,true", 3),
        ("b.l,null,null", 4),
        ("n,number,1e5", 5),
    ]


def test_documents_of_deeply_nested_json() -> None:
    """The columns of a table hold no JSON deeper than 128; what comes another way is told to be none."""
    ((_, _, found),) = documents(pa.array(['{"a":' * 300 + '"Deep"' + "}" * 300]), is_json=True)
    assert found == [(".".join("a" * 300) + ",str,deep", 0)]
    with pytest.raises(FormatError, match="is no JSON"):
        documents(pa.array(["[" * 100_000 + "]" * 100_000]), is_json=True)


def test_queries_of_json() -> None:
    reader = Reader(TextParameters(**PLAIN), is_json=True)
    assert reader.asked("b.c,str,Two words") == [("b.c,str,two", 0), ("b.c,str,words", 1)]
    assert reader.asked("a,b,number,2.5") == [("a,b,number,2.5", 0)]
    with pytest.raises(ArgumentError, match="Invalid triple format: "):
        reader.asked("b.c:two")
