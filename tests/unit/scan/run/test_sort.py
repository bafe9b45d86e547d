"""The order of rows by several keys."""

from __future__ import annotations

import pyarrow as pa

from pennon.scan.run.sort import sort_indices


def test_each_sort_key_has_a_place_for_its_nulls() -> None:
    table = pa.table({"a": [2, None, 1, 1, 1], "b": [0, 0, 5, None, 7]})
    keys = [("a", "ascending", "at_start"), ("b", "descending", "at_end")]
    assert sort_indices(table, keys).to_pylist() == [1, 4, 2, 3, 0]
    keys = [("a", "descending", "at_end"), ("b", "ascending", "at_start")]
    assert sort_indices(table, keys).to_pylist() == [0, 3, 2, 4, 1]


def test_equal_sort_keys_keep_the_order_of_rows() -> None:
    table = pa.table({"a": [None, 1, None, 1]})
    assert sort_indices(table, [("a", "ascending", "at_end")]).to_pylist() == [1, 3, 0, 2]
