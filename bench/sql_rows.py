"""Compares what two engines answer to one query: the same columns and rows, floats to nine digits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, Final

import pyarrow as pa
import sqlglot

CLOSE: Final = 1e-9
"""How far floats may differ, of their size: sums of floats depend on the order of the rows."""


def is_ordered(query: str) -> bool:
    """Return whether a query says in which order its rows come."""
    return sqlglot.parse_one(query, read="spark").args.get("order") is not None


def difference(ours: pa.Table, theirs: pa.Table, *, ordered: bool) -> str:
    """Return in words where two results differ, "" if they are the same; ``ordered``: the order of rows counts."""
    if ours.column_names != theirs.column_names:
        return f"columns {ours.column_names}, not {theirs.column_names}"
    if ours.num_rows != theirs.num_rows:
        return f"{ours.num_rows} rows, not {theirs.num_rows}"
    both = [_rows(each) if ordered else sorted(_rows(each), key=_place) for each in (ours, theirs)]
    for number, (left, right) in enumerate(zip(*both, strict=True)):
        if not all(_same(*values) for values in zip_longest(left, right)):
            return f"row {number} is {left}, not {right}"
    return ""


def _rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    return zip(*columns, strict=True) if columns else [()] * table.num_rows


def _place(row: tuple[Any, ...]) -> tuple[str, ...]:
    """Return by what rows are sorted to compare them: floats that differ in their last digits are one value."""
    return tuple(f"{value:.6g}" if isinstance(value, float) else repr(value) for value in row)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        is_nan = math.isnan(left) and math.isnan(right)
        return is_nan or math.isclose(left, right, rel_tol=CLOSE)
    return bool(left == right)
