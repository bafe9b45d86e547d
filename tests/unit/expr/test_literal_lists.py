"""Long lists of literals and comparisons are taken out of the text, with the same meaning."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from pennon.errors import ExpressionError
from pennon.expr import parse
from pennon.expr.evaluate import evaluate
from pennon.expr.literal_lists import FEWEST_LITERALS, take_out_lists
from pennon.expr.parse import parse_filter
from tests.seeds import each_seed

NUMBERS = [None, 0, 1, -1, 3, 63, 64, 100, 127]
ROWS = pa.record_batch(
    {
        "a": pa.array(NUMBERS, pa.int64()),
        "small": pa.array(NUMBERS, pa.int8()),
        "f": pa.array([None, -0.0, 1.0, -1.0, 3.5, 63.0, float("nan"), 100.0, 0.5]),
        "half": pa.array([None, 0.0, 1.0, -1.0, 3.5, 63.0, 64.0, 100.0, 0.5], pa.float32()),
        "t": pa.array([None, "", "1", "it's", "IN (1, 2)", "63", "x", "\u00e9", "1 OR a = 2"]),
        "a b": pa.array([n and abs(n) for n in NUMBERS], pa.uint16()),
        "d": pa.array(NUMBERS, pa.decimal128(9, 2)),
    }
)


def answers(text: str) -> list[bool | None]:
    found: list[bool | None] = evaluate(parse_filter(text, ROWS.schema), ROWS).to_pylist()
    return found


def is_in(column: str, items: list[str]) -> str:
    return f"{column} IN ({', '.join(items)})"


def ors(column: str, items: list[str]) -> str:
    return " OR ".join(f"{column} = {item}" for item in items)


def in_pieces(write: object, column: str, items: list[str]) -> str:
    """The same condition, of lists that are too short to be taken out."""
    few = FEWEST_LITERALS // 2
    parts = [items[at : at + few] for at in range(0, len(items), few)]
    return " OR ".join(f"({write(column, part)})" for part in parts)  # type: ignore[operator]


INTEGERS = [str(number) for number in [*range(-3, 70), 100, 300, 2**62, -(2**63)]]
TEXTS = ["'it''s'", "'IN (1, 2)'", "''", "'1'", *(f"'k{number}'" for number in range(70))]


@pytest.mark.parametrize("write", [is_in, ors])
@pytest.mark.parametrize("column", ["a", "small", "f", "half", "`a b`", "d"])
def test_integers_mean_the_same_in_one_list_and_in_many(write: object, column: str) -> None:
    text = write(column, INTEGERS)  # type: ignore[operator]
    assert take_out_lists(text)[1]
    assert answers(text) == answers(in_pieces(write, column, INTEGERS))
    assert answers(f"NOT ({text})") == answers(f"NOT ({in_pieces(write, column, INTEGERS)})")


@pytest.mark.parametrize("write", [is_in, ors])
def test_texts_mean_the_same_in_one_list_and_in_many(write: object) -> None:
    text = write("t", TEXTS)  # type: ignore[operator]
    assert take_out_lists(text)[1]
    assert answers(text) == [None, True, True, True, True, False, False, False, False]
    assert answers(text) == answers(in_pieces(write, "t", TEXTS))


@each_seed(60)
def test_literal_lists_respect_operator_precedence(seed: int) -> None:
    draw = random.Random(seed)
    *terms, last = [f"a = {number}" for number in range(FEWEST_LITERALS + draw.randrange(5))]
    before = draw.choice(["", "NOT ", "small = 3 AND ", "t = 'a = 1 OR ' OR ", "f > 0 OR ", "("])
    behind = draw.choice(["", " AND small > 60", " OR f < 0", " + 1", " IS TRUE", " OR NOT t = ''"])
    behind += ")" * before.count("(")
    text = f"{before}{' OR '.join([*terms, last])}{behind}"
    apart = f"{before}{' OR '.join([*(f'({term})' for term in terms), last])}{behind}"
    assert take_out_lists(apart)[1] == {}
    assert answers(text) == answers(apart)


def test_literal_lists_inside_a_string_are_unchanged() -> None:
    inside = is_in("a", list(map(str, range(100))))
    assert take_out_lists(f"t = '{inside}'") == (f"t = '{inside}'", {})
    assert take_out_lists(f'a > 1 AND t = "{inside}"')[1] == {}
    assert take_out_lists(f"a > 1 -- {inside}")[1] == {}


def test_literal_runs_are_collected_per_column() -> None:
    rows = pa.record_batch({"a": [1, 9], "A": [9, 1], "x = 5": [5, 1]})
    turns = " OR ".join(f"{'aA'[n % 2]} = {n + 100}" for n in range(200)) + " OR a = 1"
    assert evaluate(parse_filter(turns, rows.schema), rows).to_pylist() == [True, False]
    other = " OR ".join(f"`x = 5` = {n}" for n in (1, *range(100, 200)))
    assert take_out_lists(other)[1]
    assert evaluate(parse_filter(other, rows.schema), rows).to_pylist() == [False, True]
    later = " OR ".join(["a = 50"] + [f"A = {n}" for n in range(100)])
    assert evaluate(parse_filter(later, rows.schema), rows).to_pylist() == [True, True]
    mixed = " OR ".join(f"a = {n}" for n in range(90, 160)) + " OR A = 1"
    assert evaluate(parse_filter(mixed, rows.schema), rows).to_pylist() == [False, True]


def test_numbers_beyond_64_bits_are_the_parsers() -> None:
    items = [str(2**64 + number) for number in range(100)]
    assert take_out_lists(is_in("a", items))[1] == {}
    assert not any(answers(is_in("a", items)))


def test_literal_list_placeholder_in_user_text_is_refused() -> None:
    with pytest.raises(ExpressionError):
        parse_filter("a IN (:pennon_list_0)", ROWS.schema)
    with pytest.raises(ExpressionError):
        parse_filter(f"a IN (:pennon_list_0) OR {is_in('a', INTEGERS)}", ROWS.schema)


def test_calls_of_too_many_arguments_are_refused() -> None:
    with pytest.raises(ExpressionError, match="greatest of 5000 arguments; at most 4096 are taken"):
        parse_filter(f"greatest({', '.join(['a'] * 5000)}) > 1", ROWS.schema)


def test_a_lone_surrogate_is_a_typed_error() -> None:
    with pytest.raises(ExpressionError, match="lone surrogate"):
        parse_filter("t = '\ud800'", ROWS.schema)


COMPARED = [
    "a = 5",
    "`a b` = 5",
    "f > 3 AND half <= 16777217",
    "small = 300",
    "a=-5",
    "a = -5",
    "5 = a",
    "A >= 5 and t != 'it''s'",
    "t = 'x=5 AND y' AND\na<3",
    "a = 1.5",
    "a = 99999999999999999999",
    "t = ''",
    "t = 'a -- b' AND a <> 4",
    "a < 5 OR a > 7",
]


@pytest.mark.parametrize("text", COMPARED)
def test_comparison_chains_parse_as_in_parentheses(text: str) -> None:
    assert parse_filter(text, ROWS.schema) == parse_filter(f"({text})", ROWS.schema)


@pytest.mark.parametrize(
    "text", ["none = 5", "a = 'x'", "a = :pennon_value_0", "a = 5 AND", "case = 5"]
)
def test_literal_lists_errors_quote_the_original_text(text: str) -> None:
    with pytest.raises(ExpressionError) as plain:
        parse_filter(text, ROWS.schema)
    with pytest.raises(ExpressionError) as other:
        parse_filter(f"{text}/**/", ROWS.schema)
    assert plain.value.message == other.value.message.replace("/**/", "")


def test_one_text_with_other_literals_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [f"t = 'x{n}' AND a < {n}" for n in range(3)]
    first = parse_filter(expected[0], ROWS.schema)
    monkeypatch.setattr(parse, "_syntax", None)
    others = [parse_filter(each, ROWS.schema) for each in expected[1:]]
    assert len({str(each) for each in (first, *others)}) == 3
