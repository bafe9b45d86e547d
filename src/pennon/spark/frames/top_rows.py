"""The first rows in an order, of a part of a table, worked out where it is read: few rows cross to the JVM.

A task holds few of its rows at a time, and drops those that cannot be among the first ones.  Spark sorts what all tasks found.
The order is Spark's: NaN is greater than all numbers, -0.0 is equal to 0.0, and NULLs come where the query says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.scan.plan.query import ColumnOrdering
from pennon.scan.run.sort import hold_few, total_order
from pennon.spark.source.scan_task import ReadTasks

MOST_TOP_ROWS: Final = 10_000
"""More first rows than these are left to Spark."""


@dataclass(frozen=True, slots=True)
class TopRows:
    """The first rows in an order, so many."""

    order: tuple[ColumnOrdering, ...]
    rows: int

    def __str__(self) -> str:
        return f"first {self.rows} by {', '.join(map(_in_sql, self.order))}"

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows among which the first ones are."""
        held = hold_few(batches, self.rows, self._first)
        if held:
            yield from self._first(pa.Table.from_batches(held)).to_batches()

    def _first(self, table: pa.Table) -> pa.Table:
        """Return the first rows, in any order."""
        if table.num_rows <= self.rows:
            return table
        columns: dict[str, pa.ChunkedArray] = {}
        order: list[tuple[str, str]] = []
        for number, by in enumerate(self.order):
            values = table.column(by.column_name)
            if values.null_count:
                columns[f"null {number}"] = values.is_null()
                order.append((f"null {number}", "descending" if by.nulls_first else "ascending"))
            if pa.types.is_floating(values.type):
                values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 becomes 0.0
            columns[f"value {number}"] = total_order(values)
            order.append((f"value {number}", "ascending" if by.ascending else "descending"))
        return table.take(pc.select_k_unstable(pa.table(columns), self.rows, sort_keys=order))


def _in_sql(by: ColumnOrdering) -> str:
    """Return a key of ORDER BY without what is Spark's default: ascending, and NULLs as the least values."""
    nulls = " NULLS FIRST" if by.nulls_first else " NULLS LAST"
    is_usual = by.nulls_first is by.ascending
    return f"{by.column_name}{'' if by.ascending else ' DESC'}{'' if is_usual else nulls}"


@dataclass(frozen=True, slots=True)
class TopTasks:
    """``mapInArrow`` function: finds the first rows of the partitions that `ReadTasks` reads."""

    reads: ReadTasks
    top: TopRows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Find the first rows of the partitions named by the incoming batches."""
        yield from self.top.of(self.reads(batches))
