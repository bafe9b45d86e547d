"""The tables and queries of ``make bench-sql``, and how answers are compared."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hits import columns
from sql_rows import Answer, difference, is_ordered
from sql_tables import hits_queries, tpch_queries
from tpch_tables import TABLES, make_tables


def test_tpch_tables_are_the_same_for_a_seed_and_have_the_counts_of_the_scale() -> None:
    first, second = dict(make_tables(0.001)), dict(make_tables(0.001))
    assert list(first) == list(TABLES)
    assert first == second
    counts = {name: rows.num_rows for name, rows in first.items()}
    assert counts["orders"] == 1500
    assert counts["partsupp"] == 4 * counts["part"] == 800
    assert 1500 < counts["lineitem"] < 7 * 1500


def test_tpch_lines_have_a_supplier_of_their_part() -> None:
    tables = dict(make_tables(0.002))
    lines, offers = (
        set(zip(*(tables[name].column(column).to_pylist() for column in keys), strict=True))
        for name, keys in (
            ("lineitem", ("l_partkey", "l_suppkey")),
            ("partsupp", ("ps_partkey", "ps_suppkey")),
        )
    )
    assert lines <= offers


def test_there_are_22_queries_of_tpch_and_43_of_page_views() -> None:
    queries = [*tpch_queries(1), *hits_queries()]
    assert [each.name for each in queries] == [
        *(f"tpch {number}" for number in range(1, 23)),
        *(f"hits {number}" for number in range(1, 44)),
    ]
    assert tpch_queries(0.1)[10].parameters == {"fraction": pytest.approx(0.001)}
    assert len(columns()) > 100
    assert not is_ordered(tpch_queries(1)[5].text)
    assert is_ordered(tpch_queries(1)[0].text)


@pytest.mark.parametrize(
    ("theirs", "ordered", "found"),
    [
        ({"a": [1, 2], "b": [0.1 + 0.2, None]}, True, ""),
        ({"a": [2, 1], "b": [None, 0.3]}, False, ""),
        ({"a": [2, 1], "b": [None, 0.3]}, True, "row 0 is (1, 0.3), not (2, None)"),
        ({"a": [1, 2], "b": [0.3000001, None]}, True, "row 0 is (1, 0.3), not (1, 0.3000001)"),
        ({"a": [1], "b": [0.3]}, True, "2 rows, not 1"),
        ({"a": [1, 2], "c": [0.3, None]}, True, "columns ['a', 'b'], not ['a', 'c']"),
    ],
)
def test_difference_of_answers_names_the_first_row(
    theirs: dict[str, list[object]], ordered: bool, found: str
) -> None:
    ours = Answer.of_table(pa.table({"a": [1, 2], "b": [0.3, None]}))
    assert difference(ours, Answer.of_table(pa.table(theirs)), ordered=ordered) == found
