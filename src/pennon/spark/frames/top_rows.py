"""The first rows in an order, of a part of a table, worked out where it is read: few rows cross to the JVM.

A task chooses among pieces of its rows, and goes on with the first ones.  Spark sorts what all tasks found.  The order is Spark's: NaN
is greater than all numbers, and NULLs come where the query says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.units import MIB
from pennon.scan.read.tasks import ScanTask
from pennon.spark.source.scan_task import TableScan

MOST_TOP_ROWS: Final = 10_000
"""More first rows than these are left to Spark."""
_PIECE_ROWS: Final = 1 << 17
_PIECE_BYTES: Final = 16 * MIB
"""Rows are sorted by pieces of so many."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column of an order."""

    column: str
    descending: bool
    nulls_first: bool

    def __str__(self) -> str:
        nulls = " NULLS FIRST" if self.nulls_first else " NULLS LAST"
        is_usual = self.nulls_first is not self.descending
        return f"{self.column}{' DESC' if self.descending else ''}{'' if is_usual else nulls}"

    def parts(self, values: pa.ChunkedArray) -> Iterator[tuple[str, pa.ChunkedArray, bool]]:
        """Yield what Arrow sorts by, with a name, and whether it sorts descending: NULLs and NaN are keys of their own."""
        if values.null_count:
            yield "null", values.is_null(), self.nulls_first
        if pa.types.is_floating(values.type):
            is_nan = values.is_null(nan_is_null=True)
            yield "nan", is_nan, self.descending
            values = pc.if_else(is_nan, pa.scalar(None, values.type), values)
        yield "value", values, self.descending


@dataclass(frozen=True, slots=True)
class TopRows:
    """The first rows in an order, so many."""

    keys: tuple[SortKey, ...]
    rows: int

    def __str__(self) -> str:
        return f"first {self.rows} by {', '.join(map(str, self.keys))}"

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows among which the first ones are."""
        held: list[pa.RecordBatch] = []
        rows = size_bytes = 0
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            size_bytes += batch.nbytes
            if rows >= max(_PIECE_ROWS, 4 * self.rows) or size_bytes >= _PIECE_BYTES:
                held = self._first(pa.Table.from_batches(held)).to_batches()
                rows, size_bytes = sum(each.num_rows for each in held), 0
        if rows:
            yield from self._first(pa.Table.from_batches(held)).to_batches()

    def _first(self, table: pa.Table) -> pa.Table:
        """Return the first rows, in any order."""
        if table.num_rows <= self.rows:
            return table
        columns: dict[str, pa.ChunkedArray] = {}
        order: list[tuple[str, str]] = []
        for number, key in enumerate(self.keys):
            for name, values, descending in key.parts(table.column(key.column)):
                columns[f"{name} {number}"] = values
                order.append((f"{name} {number}", "descending" if descending else "ascending"))
        return table.take(pc.select_k_unstable(pa.table(columns), self.rows, sort_keys=order))


@dataclass(frozen=True, slots=True)
class TopTasks:
    """``mapInArrow`` function: each incoming row is the number of a partition, whose first rows are found."""

    scan: TableScan
    partitions: tuple[tuple[ScanTask, ...], ...]
    top: TopRows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Find the first rows of the partitions named by the incoming batches."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.top.of(self.scan.read(self.partitions[number]))
