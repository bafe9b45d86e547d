"""The meaning of filter texts, and refusals; the rows themselves are compared with pylance's."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal

import pyarrow as pa
import pytest

from pennon.errors import ArgumentError
from pennon.expr.evaluate import evaluate, passing
from pennon.expr.parse import parse_column, parse_filter
from pennon.expr.tree import Expression, paths_of

BATCH = pa.record_batch(
    {
        "i8": pa.array([1, -4, None, 127], pa.int8()),
        "i64": pa.array([1, -4, None, 127]),
        "dec": pa.array([Decimal(1), Decimal(-4), None, Decimal(12)], pa.decimal128(10, 2)),
        "s": ["a", "Bob", None, ""],
        "S2": ["x", "y", "z", "w"],
        "d": pa.array([dt.date(2020, 1, 1), dt.date(2020, 1, 31), None, dt.date(1970, 1, 1)]),
        "st": pa.array(
            [{"x": 1, "Y": "q"}, {"x": 2, "Y": None}, None, {"x": 4, "Y": "s"}],
            pa.struct([("x", pa.int64()), ("Y", pa.string())]),
        ),
    }
)


def rows(text: str) -> list[int]:
    found = evaluate(parse_filter(text, BATCH.schema), BATCH)
    return [row for row, kept in enumerate(found.to_pylist()) if kept]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i8 > 200", []),
        ("i8 < 200", [0, 1, 3]),
        ("i8 = 1.0", [0]),
        ("i8 = 1.5", []),
        ("i8 > 0.5", [0, 3]),
        ("dec = 1.0", [0]),
        ("d = '2020-01-01'", [0]),
        ("d > date '2020-01-01' + interval '29 days'", [1]),
        ("d between '2020-01-01' and '2020-12-31'", [0, 1]),
        ("s in ('a', 'Bob') and i64 in (-4, 7.5)", [1]),
    ],
)
def test_filter_literals_beyond_the_column_type(text: str, expected: list[int]) -> None:
    assert rows(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("case when i64 > 1 then true else i64 = -4 end", [1, 3]),
        ("case i64 when 1 then s = 'a' when 127 then s = '' end", [0, 3]),
        ("substr(s, 2) = 'ob'", [1]),
        ("extract(month from d) = 1", [0, 1, 3]),
        ("st.y = 'q' or ST.X = 4", [0, 3]),
        ("s2 = 'x'", [0]),
    ],
)
def test_filter_syntax_beyond_pylance(text: str, expected: list[int]) -> None:
    assert rows(text) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("i64 = 'x'", "int64 and string"),
        ("i64", "gives int64, not true or false"),
        ("s and true", "where true or false is expected"),
        ("nosuch = 1", "no column 'nosuch'; there are i8, i64"),
        ("st.z = 1", "no field in st: 'z'; there are x, Y"),
        ("s.x = 1", "s is string and has no field 'x'"),
        ("i64 = 1; i64 = 2", "one expression"),
        ("i64 = 1 and", "not SQL"),
        ("i64 in (select 1)", "not SQL"),
        ("nosuch(i64)", "no function 'nosuch'"),
        ("lower(i64) = 'a'", "lower does not take"),
        ("lower(s, s) = 'a'", "does not take 2 arguments"),
        ("d = '2020-13-01'", "no date32"),
        ("i BETWEEN SYMMETRIC 3 AND 1", "the lower bound first"),
        ("cast(s as nonsense) = 1", "is not supported|no type|not SQL"),
        ("__import__('os')", "no function"),
        ("timestamp '2020-01-01' - date '0001-01-01' is null", "out of bounds"),
    ],
)
def test_invalid_filters_are_refused(text: str, error: str) -> None:
    with pytest.raises(ArgumentError, match=error):
        parse_filter(text, BATCH.schema)


@pytest.mark.parametrize("text", ["i64 / 0 = 1", "cast(s as int) = 1"])
def test_filter_with_failing_computation_is_an_argument_error(text: str) -> None:
    with pytest.raises(ArgumentError, match="cannot be computed"):
        rows(text)


def test_parsed_condition_pickles_and_lists_its_columns() -> None:
    condition = parse_filter(
        "i64 > 1 and case when s = 'a' then true else st.x = 4 end", BATCH.schema
    )
    assert sorted(paths_of(condition)) == [("i64",), ("s",), ("st", "x")]
    again = pickle.loads(pickle.dumps(condition))
    assert again == condition
    assert evaluate(again, BATCH).equals(evaluate(condition, BATCH))


def test_parsed_column_types() -> None:
    assert parse_column("i8 + i64", BATCH.schema).type == pa.int64()
    assert parse_column("i8 / 2.0", BATCH.schema).type == pa.float64()
    assert parse_column("s || '!'", BATCH.schema).type == pa.string()
    assert evaluate(parse_column("7", BATCH.schema), BATCH).to_pylist() == [7] * 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 3 and s = 's3' and d is null", [3]),
        ("i > 900 and i < 903 and s != 's901'", [902]),
        ("i = 0 and s is null", []),
        ("i in (3, 4) and (d is null and s = 's4')", [4]),
        ("i in (3, 4) and li = [3]", [3]),
        ("i < 950 and i > 948 and (s = 's949' or i / 0 = 1)", None),
    ],
)
def test_condition_chain_is_evaluated_for_remaining_rows_only(
    text: str, expected: list[int] | None
) -> None:
    count = 1000
    batch = pa.record_batch(
        {
            "i": pa.array(range(count)),
            "s": [f"s{row}" for row in range(count)],
            "d": pa.array([None] * count, pa.date32()),
            "li": [[row] for row in range(count)],
        }
    )
    condition = parse_filter(text, batch.schema)
    if expected is None:
        with pytest.raises(ArgumentError, match="divide by zero"):
            passing(condition, batch)
        return
    assert [
        row for row, kept in enumerate(passing(condition, batch).to_pylist()) if kept
    ] == expected
    assert rows_of(condition, batch) == expected


def rows_of(condition: Expression, batch: pa.RecordBatch) -> list[int]:
    found = evaluate(condition, batch)
    return [row for row, kept in enumerate(found.to_pylist()) if kept]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("odd", ["x", "É", "ß☃"])
def test_string_functions_on_ascii_and_other_slices(kind: pa.DataType, odd: str) -> None:
    """Slices as well: characters outside of them do not matter, those inside do."""
    texts = ["☃", "Ab", None, odd, "", "bA c", "☃☃"]
    whole = pa.record_batch({"s": pa.array(texts, kind)})
    for start in range(len(texts)):
        for end in range(start, len(texts) + 1):
            batch = whole.slice(start, end - start)
            inside = texts[start:end]
            for text, expected in {
                "upper(s)": [None if x is None else x.upper() for x in inside],
                "reverse(s)": [None if x is None else x[::-1] for x in inside],
                "length(s)": [None if x is None else len(x) for x in inside],
                "s ilike '%B'": [None if x is None else x.lower().endswith("b") for x in inside],
            }.items():
                found = evaluate(parse_column(text, batch.schema), batch).to_pylist()
                assert found == expected, (text, inside)
