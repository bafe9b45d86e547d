"""Aggregates of a part of a table, worked out where it is read: groups cross to the JVM, rows do not.

A task aggregates pieces of its rows, and puts what it has together from time to time.  Where many groups
come of few rows it holds no more than `MOST_GROUPS`: what it has goes to Spark, which puts the partial
aggregates of all tasks together anyway, and can spill.

Values are Spark's: NaN is greater than all numbers, NULLs are left out.  Sums of longs are kept in two
halves, so that none overflows before Spark sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.units import MIB
from pennon.scan.plan.exact_bounds import ExactRows, split_by_statistics
from pennon.scan.read.tasks import ScanTask
from pennon.schema.field import Field
from pennon.spark.arrow_convert import convert_batch
from pennon.spark.frames.arithmetic import Number
from pennon.spark.source.scan_task import TableScan
from pennon.spark.types import MAX_SPARK_PRECISION

PIECE_ROWS: Final = 1 << 17
PIECE_BYTES: Final = 16 * MIB
"""Rows are aggregated by pieces of so many: each piece costs a plan."""
MOST_GROUPS: Final = 1 << 16
"""A task keeps no more groups than these."""
EMITTED_ROWS: Final = 16_384
_LOW_BITS: Final = 32


class Way(Enum):
    """The way in which a partial aggregate is made from values, and merged from partial ones."""

    ROWS = "rows"
    COUNT = "count"
    SUM = "sum"
    HIGH_SUM = "high sum"
    LOW_SUM = "low sum"
    MIN = "min"
    MAX = "max"


_ARROW: Final = {
    Way.COUNT: "count",
    Way.SUM: "sum",
    Way.HIGH_SUM: "sum",
    Way.LOW_SUM: "sum",
    Way.MIN: "min",
    Way.MAX: "max",
}


_OF_STATISTICS: Final = frozenset({Way.ROWS, Way.COUNT, Way.MIN, Way.MAX})


@dataclass(frozen=True, slots=True)
class Part:
    """A column of partial aggregates.

    ``column`` is the one whose values are aggregated, in the type ``values``; ``field`` is what becomes of it.
    """

    way: Way
    column: str
    values: pa.DataType
    field: pa.Field

    def input(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return the values that are aggregated."""
        column = rows.column(self.column)
        if self.way is Way.HIGH_SUM:
            return pc.shift_right(column, pa.scalar(_LOW_BITS, pa.int64()))
        if self.way is Way.LOW_SUM:
            return pc.bit_wise_and(column, pa.scalar((1 << _LOW_BITS) - 1, pa.int64()))
        if self.way is Way.SUM:
            # As Spark turns longs into doubles, by rounding.
            return column.cast(self.sum_type, safe=not pa.types.is_floating(self.values))
        return column

    @property
    def sum_type(self) -> pa.DataType:
        """Return the type in which values are added; Arrow does not notice sums that need more than 38 digits."""
        kind = self.values
        if pa.types.is_decimal128(kind) and kind.precision == MAX_SPARK_PRECISION:
            return pa.decimal256(MAX_SPARK_PRECISION, kind.scale)
        return kind

    @property
    def merging(self) -> Part:
        """Return how partial aggregates of this kind become one."""
        is_bound = self.way in {Way.MIN, Way.MAX}
        kind = self.field.type
        return Part(self.way if is_bound else Way.SUM, self.field.name, kind, self.field)


@dataclass(frozen=True, slots=True)
class Partials:
    """Partial aggregates of rows, by keys."""

    keys: tuple[str, ...]
    parts: tuple[Part, ...]
    schema: pa.Schema
    """Keys, then the parts."""
    computed: tuple[tuple[str, Number], ...] = ()
    """Numbers that are aggregated, and no columns of the table; they are named as no column is."""

    @property
    def are_bounds(self) -> bool:
        """Return whether all parts, of all rows, may be known without the values."""
        is_known = all(part.way in _OF_STATISTICS for part in self.parts)
        return is_known and not self.keys and not self.computed

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield partial aggregates of rows; a group may come more than once."""
        merge = Partials(self.keys, tuple(part.merging for part in self.parts), self.schema)
        held: list[pa.Table] = []
        for rows in _pieces(batches):
            held.append(self._aggregate(rows))
            if sum(table.num_rows for table in held) > MOST_GROUPS:
                held = [merge._aggregate(pa.concat_tables(held))]
                if held[0].num_rows > MOST_GROUPS // 2:
                    yield from held.pop().to_batches(EMITTED_ROWS)
        if len(held) > 1:
            held = [merge._aggregate(pa.concat_tables(held))]
        for table in held:
            yield from table.to_batches(EMITTED_ROWS)

    def _aggregate(self, rows: pa.Table) -> pa.Table:
        """Return one row a group."""
        for name, of_rows in self.computed:
            rows = rows.append_column(name, _whole_column(of_rows.of(rows), rows.num_rows))
        columns = {f"key {n}": rows.column(name) for n, name in enumerate(self.keys)}
        wanted: list[tuple[Any, str, Any]] = []
        for number, part in enumerate(self.parts):
            _ask(part, number, rows, columns, wanted)
        # A table without columns has no rows.
        table = pa.table(columns) if columns else rows
        keys = [f"key {n}" for n in range(len(self.keys))]
        found = table.group_by(keys, use_threads=False).aggregate(wanted)
        arrays = [found.column(key) for key in keys]
        arrays += [_answer(part, number, found) for number, part in enumerate(self.parts)]
        pairs = zip(arrays, self.schema, strict=True)
        return pa.Table.from_arrays([a.cast(f.type) for a, f in pairs], schema=self.schema)


@dataclass(frozen=True, slots=True)
class AggregateTasks:
    """``mapInArrow`` function: each incoming row is the number of a partition, which is aggregated."""

    scan: TableScan
    partitions: tuple[tuple[ScanTask, ...], ...]
    partials: Partials

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Aggregate the partitions named by the incoming batches."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.of(self.partitions[number])

    def of(self, tasks: Sequence[ScanTask]) -> Iterator[pa.RecordBatch]:
        """Yield partial aggregates of what tasks read."""
        if not self.scan.schema.names:
            yield counted(self.scan.count(tasks), self.partials.schema)
            return
        if self.partials.are_bounds and self.scan.query.condition is None:
            known, tasks = split_by_statistics(self.scan.query.snapshot, tasks, self._stored())
            yield from (self._of_statistics(each) for each in known)
        if tasks:
            yield from self.partials.of(self.scan.read(tasks))

    def _stored(self) -> list[Field]:
        fields = {field.name: field for field in self.scan.query.snapshot.manifest.schema.fields}
        return [fields[name] for name in self.scan.schema.names]

    def _of_statistics(self, known: ExactRows) -> pa.RecordBatch:
        """Return the partial aggregates of rows that statistics know, in Spark's types."""
        columns = [known.columns[name] for name in self.scan.schema.names]
        ends = pa.RecordBatch.from_arrays([c.ends for c in columns], self.scan.schema.names)
        (found,) = self.partials.of([convert_batch(ends, self.scan.schema)])
        arrays = found.columns
        for at, part in enumerate(self.partials.parts):
            if part.way in {Way.ROWS, Way.COUNT}:
                nulls = known.columns[part.column].nulls if part.way is Way.COUNT else 0
                arrays[at] = pa.repeat(pa.scalar(known.rows - nulls, pa.int64()), 1)
        return pa.RecordBatch.from_arrays(arrays, schema=self.partials.schema)


def _whole_column(values: Any, rows: int) -> pa.ChunkedArray:
    """Return values of rows as a column; a constant is repeated."""
    if isinstance(values, pa.Scalar):
        return pa.chunked_array([pa.repeat(values, rows)])
    return values


def counted(rows: int, schema: pa.Schema) -> pa.RecordBatch:
    """Return the partial aggregates of rows when only their number is wanted."""
    columns = [pa.repeat(pa.scalar(rows, pa.int64()), 1) for _ in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Put batches together to pieces that are worth a plan."""
    held: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if rows >= PIECE_ROWS or size_bytes >= PIECE_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size_bytes = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held)


def _ask(
    part: Part,
    number: int,
    rows: pa.Table,
    columns: dict[str, pa.ChunkedArray],
    wanted: list[tuple[Any, str, Any]],
) -> None:
    """Add the columns that a part needs, and what Arrow is asked of them."""
    if part.way is Way.ROWS:
        wanted.append(([], "count_all", None))
        return
    name = f"part {number}"
    values = part.input(rows)
    if part.way in {Way.MIN, Way.MAX} and pa.types.is_floating(values.type):
        # Arrow leaves NaN out.
        is_nan = pc.is_nan(values)
        values = pc.if_else(is_nan, pa.scalar(None, values.type), values)
        columns[f"{name} is nan"] = is_nan
        wanted.append((f"{name} is nan", "max", None))
    columns[name] = values
    wanted.append((name, _ARROW[part.way], None))


def _answer(part: Part, number: int, found: pa.Table) -> pa.ChunkedArray:
    """Return a part's column, in Spark's order of numbers."""
    if part.way is Way.ROWS:
        return found.column("count_all")
    name = f"part {number}"
    values = found.column(f"{name}_{_ARROW[part.way]}")
    if f"{name} is nan_max" not in found.column_names:
        return values
    has_nan = pc.fill_null(found.column(f"{name} is nan_max"), fill_value=False)
    nan = pa.scalar(float("nan"), values.type)
    if part.way is Way.MAX:
        return pc.if_else(has_nan, nan, values)
    return pc.if_else(pc.and_(has_nan, pc.is_null(values)), nan, values)
