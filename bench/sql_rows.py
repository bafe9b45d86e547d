"""Compares what two engines answer to one query: the same columns and rows, floats to nine digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

import pyarrow as pa
import sqlglot
from pyspark.sql import DataFrame

CLOSE: Final = 1e-9
"""How far floats may differ, of their size: sums of floats depend on the order of the rows."""
Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The columns and the rows of a result."""

    columns: Sequence[str]
    rows: Sequence[Row]

    @classmethod
    def of_table(cls, table: pa.Table) -> Self:
        """Return the rows of an Arrow table."""
        columns = [column.to_pylist() for column in table.columns]
        return cls(table.column_names, list(zip(*columns, strict=True)))

    @classmethod
    def of_frame(cls, frame: DataFrame) -> Self:
        """Return the rows of a DataFrame."""
        return cls(frame.columns, [tuple(row) for row in frame.collect()])


def is_ordered(query: str) -> bool:
    """Return whether a query says in which order its rows come."""
    return sqlglot.parse_one(query, read="spark").args.get("order") is not None


def difference(ours: Answer, theirs: Answer, *, ordered: bool) -> str:
    """Return in words where two results differ, "" if they are the same; ``ordered``: the order of rows counts."""
    if ours.columns != theirs.columns:
        return f"columns {ours.columns}, not {theirs.columns}"
    if len(ours.rows) != len(theirs.rows):
        return f"{len(ours.rows)} rows, not {len(theirs.rows)}"
    both = [each.rows if ordered else sorted(each.rows, key=_place) for each in (ours, theirs)]
    for number, (left, right) in enumerate(zip(*both, strict=True)):
        if not all(_same(*values) for values in zip(left, right, strict=True)):
            return f"row {number} is {left}, not {right}"
    return ""


def _place(row: Row) -> tuple[str, ...]:
    """Return by what rows are sorted to compare them: floats that differ in their last digits are one value."""
    return tuple(f"{value:.6g}" if isinstance(value, float) else repr(value) for value in row)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        is_nan = math.isnan(left) and math.isnan(right)
        return is_nan or math.isclose(left, right, rel_tol=CLOSE)
    return bool(left == right)
