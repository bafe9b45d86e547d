"""Any text at all gives a condition, or an error of ours; never anything else."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.errors import ArgumentError
from pennon.expr.evaluate import evaluate
from pennon.expr.parse import parse_filter
from tests.interop.filter_corpus import filter_table, filters

TABLE = filter_table().slice(0, 20).combine_chunks()
BATCH = TABLE.to_batches()[0]
TOKENS = [
    *("and", "or", "not", "is", "null", "in", "between", "like", "case", "when", "then", "end"),
    *("cast", "as", "int", "interval", "select", "from", "where", "date", "'2020-01-01'", "array"),
    *("(", ")", "[", "]", ",", ".", "+", "-", "*", "/", "%", "=", "<", ">", "||", "::", ";", "--"),
    *(
        "'",
        '"',
        "`",
        "x'",
        "\\",
        "\0",
        "☃",
        "1",
        "0.5",
        "1e999",
        "99999999999999999999",
        "/*",
        "$1",
    ),
    *("i32", "s", "b", "f64", "d", "ts", "li", "st", "st.x", "coalesce", "array_has", "date_part"),
]


def run(text: str) -> None:
    try:
        condition = parse_filter(text, TABLE.schema)
        assert len(evaluate(condition, BATCH)) == BATCH.num_rows
    except ArgumentError:
        pass


def texts(seed: int, count: int) -> list[str]:
    rng = np.random.default_rng(seed)
    corpus = list(filters())
    found = []
    for number in range(count):
        if number % 3 == 0:
            found.append(" ".join(rng.choice(TOKENS, rng.integers(1, 14))))
            continue
        words = corpus[rng.integers(len(corpus))].split(" ")
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(words)))
            words[at : at + rng.integers(0, 2)] = [str(rng.choice(TOKENS))]
        text = " ".join(words)
        if number % 3 == 2 and text:
            at = int(rng.integers(len(text)))
            text = text[:at] + chr(int(rng.integers(1, 0x250))) + text[at + 1 :]
        found.append(text)
    return found


def test_random_texts() -> None:
    for text in texts(4, 3000):
        run(text)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_many_random_texts(seed: int) -> None:
    for text in texts(100 + seed, 5000):
        run(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000 + "b" + ")" * 100_000,
        "not " * 100_000 + "b",
        "-" * 100_001 + "i32 = 1",
        "- " * 100_001 + "i32 = 1",
        "case when b then " * 50_000,
        "[" * 100_000,
        "b = " * 50_000 + "b",
        "i32 + " * 50_000 + "1 = 2",
        "cast(" * 50_000,
        "x" * 20_000_000,
    ],
    ids=range(10),
)
def test_deep_and_long_texts(text: str) -> None:
    with pytest.raises(ArgumentError):
        parse_filter(text, TABLE.schema)


def test_long_chains_are_fine() -> None:
    condition = parse_filter(
        " or ".join(f"i32 = {number}" for number in range(20_000)), TABLE.schema
    )
    assert evaluate(condition, BATCH).to_pylist() == [
        None if value is None else value >= 0 for value in BATCH["i32"].to_pylist()
    ]
