"""Any text gives a condition or a typed error."""

from __future__ import annotations

import random
import re
import time

import numpy as np
import pytest

from pennon.errors import ArgumentError
from pennon.expr.evaluate import evaluate
from pennon.expr.functions.registry import FUNCTIONS
from pennon.expr.parse import parse_column, parse_filter
from tests.interop.filter_corpus import filter_table, filters
from tests.interop.function_corpus import expressions

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


SECONDS = 1.0
"""What a text may take, of the processor's time, however busy the machine is."""


def run(text: str) -> None:
    """A text is a condition, or a column, or refused, and in no time."""
    started = time.process_time()
    for parse in (parse_filter, parse_column):
        try:
            expression = parse(text, TABLE.schema)
            found = evaluate(expression, BATCH)
        except ArgumentError:
            continue
        assert len(found) == BATCH.num_rows, text
        assert found.type == expression.type, text
        found.validate(full=True)
    assert time.process_time() - started < SECONDS, text


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


LITERALS = [
    *("0", "1", "2", "-1", "3", "100000", "9223372036854775807", "-9223372036854775808", "1.5"),
    *("1e300", "'a'", "''", "'%b_'", "'(b|o)+'", "'day'", "'2020-01-01'", "'hex'", "'Int64'"),
    *(
        "null",
        "true",
        "x'00ff'",
        "[1, 2]",
        "['a', null]",
        "[]",
        "'15 minutes'",
        "date '2020-01-01'",
    ),
]
KNOWN = expressions()
COLUMNS = [name if name.isidentifier() else f"`{name}`" for name in TABLE.column_names]
OPERATORS = ["+", "-", "*", "/", "%", "<<", "||", "=", "<", "and", "is distinct from", "like", "in"]


def calls(seed: int, count: int) -> list[str]:
    """Return calls of any functions, of anything, within each other."""
    choose = random.Random(seed)
    names = sorted(FUNCTIONS.keys() - {"||"})

    def operand(depth: int) -> str:
        kind = choose.random()
        if depth == 0 or kind < 0.25:
            return choose.choice(COLUMNS if choose.random() < 0.6 else LITERALS)
        if kind < 0.75:
            return call(depth)
        if kind < 0.8:
            return f"{operand(depth - 1)}[{operand(0)}]"
        if kind < 0.85:
            return f"cast({operand(depth - 1)} as {choose.choice(TYPES)})"
        return f"({operand(depth - 1)} {choose.choice(OPERATORS)} {operand(depth - 1)})"

    def call(depth: int) -> str:
        name = choose.choice(names)
        function = FUNCTIONS[name]
        most = function.most if function.most is not None else function.least + 2
        given = [operand(depth - 1) for _ in range(choose.randint(function.least, most))]
        return f"{name}({', '.join(given)})"

    def nested() -> str:
        """A known expression, of which columns became others, or expressions themselves."""
        words = re.split(r"(\b(?:" + "|".join(TABLE.column_names) + r")\b)", choose.choice(KNOWN))
        for at in range(1, len(words), 2):
            kind = choose.random()
            words[at] = f"({choose.choice(KNOWN)})" if kind < 0.5 else words[at]
            words[at] = operand(1) if kind > 0.9 else words[at]
        return "".join(words)

    return [nested() if number % 2 else call(3) for number in range(count)]


TYPES = ["int", "tinyint unsigned", "double", "string", "binary", "date", "timestamp(3)"]
TYPES += ["decimal(10, 2)", "boolean", "bigint", "float"]


def test_random_texts_parse_or_raise_typed_errors() -> None:
    for text in texts(4, 2000):
        run(text)


def test_random_calls_parse_or_raise_typed_errors() -> None:
    for text in calls(4, 2000):
        run(text)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_many_random_texts_parse_or_raise_typed_errors(seed: int) -> None:
    for text in (*texts(100 + seed, 3000), *calls(100 + seed, 3000)):
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
