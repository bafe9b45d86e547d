"""Functions and operators of SQL beside pylance: the same values, of the same types."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError
from pennon.expr.evaluate import evaluate
from pennon.expr.parse import parse_column
from tests.interop.equality import difference
from tests.interop.filter_corpus import filter_table
from tests.interop.function_corpus import expressions
from tests.interop.oracle import Oracle, OracleError

TEXTS = expressions()
TABLE = filter_table().combine_chunks()
BATCH = TABLE.to_batches()[0]
AT_ONCE = 50


def test_function_values_equal_pylance(newest: Oracle, tmp_path: Path) -> None:
    """A scan of many columns at once; literals stay within one batch."""
    uri = tmp_path / "t"
    pennon.write_dataset(TABLE, uri)
    parts = [TEXTS[at : at + AT_ONCE] for at in range(0, len(TEXTS), AT_ONCE)]
    call = {"op": "scan", "uri": str(uri), "out": True}
    calls = [{**call, "columns": {"i8": "i8", **{text: text for text in part}}} for part in parts]
    wrong = []
    for part, theirs in zip(parts, newest.run(calls), strict=True):
        assert not isinstance(theirs, OracleError), theirs
        for text in part:
            ours = pa.table({"": evaluate(parse_column(text, TABLE.schema), BATCH)})
            found = difference(ours, theirs.select([text]).rename_columns([""]))
            if found is not None:
                wrong.append(f"{text}: {found}")
    assert not wrong, "\n".join(wrong)
    assert len(TEXTS) >= 400


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("left(s, 1)", pa.string()),
        ("md5(s)", pa.string()),
        ("concat(ls, s)", pa.large_string()),
        ("regexp_match(ls, 'o')", pa.list_(pa.large_string())),
        ("arrow_cast(s, 'Utf8View')", pa.string()),
    ],
)
def test_functions_with_string_view_results_give_plain_strings(
    newest: Oracle, tmp_path: Path, text: str, kind: pa.DataType
) -> None:
    pennon.write_dataset(TABLE, tmp_path / "t")
    theirs = newest.scan(tmp_path / "t", columns={"x": text})
    assert "string_view" in str(theirs.schema.field("x").type)
    ours = evaluate(parse_column(text, TABLE.schema), BATCH)
    assert ours.type == kind
    assert ours.to_pylist() == theirs["x"].to_pylist()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("array_lenght(li)", "no function 'array_lenght'; near it are .*array_length"),
        ("sha265(s)", "near it are sha256"),
        ("date_bin('1 day', i32)", "date_bin does not take"),
        ("date_trunc('decade', ts)", "not cut to 'decade'; the units are day"),
        ("to_char(ts, '%Q')", "'%Q' is no part"),
        ("arrow_cast(i32, 'Nonsense')", "no type 'Nonsense'; there are Null, Boolean"),
        ("digest(s, 'md4')", "no digest 'md4'; there are md5"),
        ("li < [2]", "have no order"),
        ("s like 'a!%%' escape '!'", "no other escape"),
        ("random(1)", "random does not take 1 arguments"),
        ("interval '1 year' is null", "months and years"),
        ("named_struct('a', i32)['b']", "no field 'b'; there are a"),
        ("tsn - tz", "one has no zone"),
        ("length(i32)", "length does not take .int32.: argument 1 cannot be int32"),
        ("array_sort(li, 'UP')", "sorted 'ASC' or 'DESC'"),
        ("_cast_list_f16(li)", "argument 1 cannot be list<item: int32>"),
        ("_cast_list_f16(f32)", "argument 1 cannot be float"),
    ],
)
def test_invalid_function_calls_name_the_function(text: str, error: str) -> None:
    with pytest.raises(ArgumentError, match=error):
        evaluate(parse_column(text, TABLE.schema), BATCH)


@pytest.mark.parametrize(
    "text",
    [
        "repeat(s, 1000000000)",
        "repeat(repeat(s, 10000), 10000)",
        "lpad(s, 1000000000)",
        "rpad(s, 2000000000, 'xy')",
        "array_repeat(1, 100000000000)",
        "array_repeat(array_repeat(i32, 100000), 100000)",
        "generate_series(1, 100000000000)",
        "range(-9223372036854775808, 9223372036854775807)",
        "array_resize(li, 100000000000)",
        "replace(repeat(s, 30000), '', repeat('x', 30000))",
        "replace(repeat(s, 30000), s, repeat('x', 30000))",
        "levenshtein(repeat(s, 30000), repeat(s, 30000))",
    ],
)
def test_functions_with_huge_results_are_refused(text: str) -> None:
    """The oracle takes the process down for want of memory, or uses all there is."""
    with pytest.raises(ArgumentError, match=r"more than|shorter"):
        evaluate(parse_column(text, TABLE.schema), BATCH)


def test_random_and_uuid_differ_by_row() -> None:
    for text in ("random()", "uuid()"):
        found = evaluate(parse_column(text, TABLE.schema), BATCH).to_pylist()
        assert len(set(found)) == BATCH.num_rows


def test_computed_columns_of_takes(newest: Oracle, tmp_path: Path) -> None:
    uri = tmp_path / "t"
    pennon.write_dataset(TABLE, uri, max_rows_per_file=100)
    newest.call("delete", uri=str(uri), predicate="i8 = 5")
    dataset = pennon.dataset(uri)
    columns = {"x": "i32 + 1", "s": "st.y", "i32": "s", "at": "_rowid", "o": "`odd name` * st.x"}
    rows = [150, 3, 3, 207]
    theirs = newest.call("take", uri=str(uri), out=True, indices=rows, columns=columns)
    assert difference(dataset.take(rows, columns=columns), theirs) is None
    ids = dataset.take(rows, columns=["_rowid"])["_rowid"].to_pylist()
    assert difference(dataset._take_rows(ids, columns=columns), theirs) is None
    assert dataset.take([], columns={"x": "i8 + 1"}).schema == pa.schema({"x": pa.int8()})
    assert dataset.take([1, 1], columns={"x": "7"})["x"].to_pylist() == [7, 7]
    with pytest.raises(ArgumentError, match="no column 'nosuch'"):
        dataset.take([1], columns={"x": "nosuch + 1"})


def test_comparisons_of_signed_zeros_beside_pylance(newest: Oracle, tmp_path: Path) -> None:
    """One zero equals another, beside a column as beside a literal."""
    zeros = [[x, y] for x in (0.0, -0.0) for y in (0.0, -0.0)]
    table = pa.table({"a": [x for x, _ in zeros], "b": [y for _, y in zeros]})
    uri = tmp_path / "t"
    dataset = pennon.write_dataset(table, uri)
    for text, theirs in {"a = 0.0": 4, "a < 0.0": 0, "a = b": 2, "a < b": 1}.items():
        assert newest.scan(uri, filter=text).num_rows == theirs
        assert dataset.count_rows(text) == (0 if "<" in text else 4)


def test_upper_lower_and_initcap_of_letters_that_change_length(
    newest: Oracle, tmp_path: Path
) -> None:
    """And those whose other case depends on where they are."""
    texts = ["ß", "ŉa", "İ", "ΑΣ ΑΣΑ", "a1b c_d-é", None, "ǆ", "plain Text"]
    table = pa.table({"s": texts, "l": pa.array(texts, pa.large_string())})
    dataset = pennon.write_dataset(table, tmp_path / "t")
    columns = {"u": "upper(s)", "d": "lower(s)", "i": "initcap(s)", "b": "upper(l)"}
    theirs = newest.scan(tmp_path / "t", columns=columns)
    assert difference(dataset.to_table(columns=columns), theirs) is None
