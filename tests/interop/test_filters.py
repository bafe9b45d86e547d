"""SQL filters beside pylance: the same rows, in the same order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError
from tests.interop.equality import difference
from tests.interop.filter_corpus import filter_table, filters
from tests.interop.filter_edges import edge_table, edges
from tests.interop.oracle import Oracle, OracleError

TEXTS = list(dict.fromkeys(filters()))


def compare(oracle: Oracle, folder: Path, table: pa.Table, texts: list[str]) -> int:
    """Return how many filters the oracle takes; all of them find the same rows.

    Where the oracle refuses (it is strict about types), ours gives rows or refuses as well.
    """
    uri = folder / "t"
    dataset = pennon.write_dataset(table, uri)
    asked = {"op": "scan", "uri": str(uri), "out": True, "columns": [], "with_row_address": True}
    answers = oracle.run([{**asked, "filter": text} for text in texts])
    found, wrong = 0, []
    for text, answer in zip(texts, answers, strict=True):
        try:
            rows = dataset.to_table(columns=[], filter=text, with_row_address=True)
        except ArgumentError as error:
            ours: object = str(error)
        else:
            ours = rows["_rowaddr"].to_pylist()
        if isinstance(answer, OracleError):
            continue
        found += 1
        if ours != answer["_rowaddr"].to_pylist():
            wrong.append((text, answer["_rowaddr"].to_pylist()[:12], ours))
    assert not wrong, "\n".join(map(str, wrong))
    return found


def test_filters_select_the_rows_of_pylance(newest: Oracle, tmp_path: Path) -> None:
    assert compare(newest, tmp_path, filter_table(), TEXTS) >= 400


def test_filters_at_type_limits_select_the_rows_of_pylance(newest: Oracle, tmp_path: Path) -> None:
    assert compare(newest, tmp_path, edge_table(), edges()) >= 400


@pytest.mark.parametrize(
    ("text", "theirs", "ours"),
    [
        ("tsn > tsu", 0, 8),
        ("tss = timestamp '2020-01-01 00:00:02.5'", 1, 0),
        ("cast(d1 as int) = 1", 0, 8),
        ("cast(d3 as decimal(4,0)) = 1", 0, 3),
        ("greatest(d1, g) = 1.5", None, 5),
        ("regexp_count(s, 'b*') > length(s)", 18, 21),
        ("arrow_typeof(ifnull(ts, da)) = 'Utf8'", 24, 0),
        ("contains_tokens(s, null)", 21, 0),
        ("contains_tokens('a b k', s)", 24, 10),
    ],
)
def test_filters_that_differ_from_pylance_by_design(
    newest: Oracle, tmp_path: Path, text: str, theirs: int | None, ours: int
) -> None:
    dataset = pennon.write_dataset(edge_table(), tmp_path / "t")
    assert dataset.count_rows(text) == ours
    if theirs is None:
        with pytest.raises(OracleError, match="Overflowing"):
            newest.scan(tmp_path / "t", filter=text)
    else:
        assert newest.scan(tmp_path / "t", filter=text).num_rows == theirs


@pytest.mark.parametrize("text", ["i32 > 1", "s like 'B%' or b"])
def test_filter_in_every_method_selects_the_same_rows(tmp_path: Path, text: str) -> None:
    dataset = pennon.write_dataset(filter_table(), tmp_path / "t", max_rows_per_file=100)
    kept = dataset.to_table(filter=text)
    assert kept.num_rows == dataset.count_rows(text) == dataset.scanner(filter=text).count_rows()
    assert difference(dataset.to_table(filter=text, batch_size=7), kept) is None
    some = dataset.to_table(filter=text, limit=5, offset=3)
    assert difference(some, kept.slice(3, 5)) is None
    parts = [fragment.count_rows(text) for fragment in dataset.get_fragments()]
    assert sum(parts) == kept.num_rows
    renamed = dataset.to_table(columns={"i32": "s", "n": "i64"}, filter=text)
    assert renamed["i32"].to_pylist() == kept["s"].to_pylist()
    assert f"full_filter={text}" in dataset.scanner(filter=text).explain_plan()


COLUMNS = """
    i8 + 1; u8 + 1; i32 * 2; st.x * 2; f32 * 2; f32 * 0.1; i8 / 2; dec + 1; dec * dec; dec * 2; i8 + i64; u8 + i64
    i64 + f64; -i8; i8 % 3; abs(i16); round(f32); sqrt(u8); sqrt(abs(f32)); power(i32, 2); length(s)
    octet_length(s); date_part('year', ts); date_trunc('month', ts); coalesce(i8, 1); greatest(i8, 1)
    cast(i32 as string); upper(ls); array_length(li); li[1]; lower(s); strpos(s, 'o'); ln(u8); signum(i8)
    nullif(i8, 1); nvl2(i8, 1, 2); to_date(ts); ts - ts; i32 > 1; starts_with(s, 'a'); repeat(s, 2)
    ts::date; dec - i32; dec + f64; array_to_string(lst, '-'); regexp_replace(s, 'o', 'b')
    f64 / 2; i32 / i8 is null; s is null; b and i32 > 1; array_has(lst, 'a'); date_part('second', ts)
"""


@pytest.mark.parametrize("where", [None, "i8 != 0 and i32 != 0"])
def test_computed_columns_equal_pylance(newest: Oracle, tmp_path: Path, where: str | None) -> None:
    """Values and types alike."""
    uri = tmp_path / "t"
    dataset = pennon.write_dataset(filter_table(), uri)
    texts = [
        text.strip() for line in COLUMNS.splitlines() for text in line.split("; ") if text.strip()
    ]
    texts = [text for text in texts if where or "i32 / i8" not in text]
    asked = [{"x": text, "s": "st.y", "at": "_rowid"} for text in texts]
    calls = [{"op": "scan", "uri": str(uri), "out": True, "columns": columns} for columns in asked]
    if where is not None:
        calls = [{**call, "filter": where} for call in calls]
    for columns, theirs in zip(asked, newest.run(calls), strict=True):
        ours = dataset.to_table(columns=columns, filter=where)
        assert not isinstance(theirs, OracleError), (columns, theirs)
        assert difference(ours, theirs) is None, columns
        assert ours.schema.types == theirs.schema.types, columns


def test_computed_columns_with_limits(tmp_path: Path) -> None:
    dataset = pennon.write_dataset(filter_table(), tmp_path / "t", max_rows_per_file=100)
    columns = {"twice": "i64 * 2", "i64": "i64"}
    whole = dataset.to_table(columns=columns, with_row_id=True)
    assert whole.column_names == ["twice", "i64", "_rowid"]
    assert dataset.to_table(columns=columns, limit=7, offset=95, with_row_id=True) == whole.slice(
        95, 7
    )
    assert dataset.scanner(columns=columns).count_rows() == 240
    parts = [f.to_table(columns=columns, with_row_id=True) for f in dataset.get_fragments()]
    assert difference(pa.concat_tables(parts), whole) is None
