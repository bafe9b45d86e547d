"""Filters of Spark's scans: those of all scans, of a part of the table.

A filter is bound on the driver.  Apart from the rest, because importing it takes a fresh worker longer
than reading, and most tasks have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pennon.expr.evaluate import passing
from pennon.expr.tree import Call, Expression, paths_of
from pennon.scan.compute import Condition
from pennon.scan.execute import Scan
from pennon.scan.filter import Predicate, SqlPredicate
from pennon.scan.filter_exec import read_query_batches
from pennon.scan.query import BoundQuery, bind_condition, every_column, parse_predicate
from pennon.scan.snapshot import Snapshot
from pennon.spark.arrow_convert import convert_batch
from pennon.spark.scan_task import TableScan


@dataclass(frozen=True, slots=True)
class ConvertedPredicate:
    """A condition on columns whose types are others in Spark: ``schema`` has these, in Spark's types."""

    condition: Expression
    schema: pa.Schema

    def paths(self, schema: pa.Schema) -> list[tuple[str, ...]]:  # noqa: ARG002 - bound already
        """See `pennon.scan.filter.Predicate`."""
        return [(name,) for name in self.schema.names]

    def test(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """See `pennon.scan.filter.Predicate`."""
        return passing(self.condition, convert_batch(batch, self.schema))

    def __str__(self) -> str:
        return str(self.condition)


def where(scan: TableScan, text: str) -> TableScan:
    """Return the scan of the rows that pass an SQL condition.

    Raises ArgumentError if the text is none, or names what the table does not have.
    """
    return _where(scan, parse_predicate(scan.scan.snapshot, text))


def where_all(scan: TableScan, conditions: Sequence[Expression]) -> TableScan:
    """Return the scan of the rows that pass all of Spark's conditions."""
    if not conditions:
        return scan
    return _where(scan, pushed(conditions, scan.schema, _every_column(scan.scan.snapshot)))


def pushed(conditions: Sequence[Expression], shown: pa.Schema, stored: pa.Schema) -> Predicate:
    """Return the predicate that all of Spark's conditions hold.

    ``shown`` has the columns in Spark's types, ``stored`` in those of the table.  Where they are the
    same, the condition is one of the table, and statistics may rule rows out.
    """
    whole = conditions[0]
    if len(conditions) > 1:
        whole = Call("AND", tuple(conditions), pa.bool_())
    paths = paths_of(whole)
    if all(_type_at(shown, path) == _type_at(stored, path) for path in paths):
        return SqlPredicate(str(whole), whole)
    names = dict.fromkeys(path[0] for path in paths)
    return ConvertedPredicate(whole, pa.schema([shown.field(name) for name in names]))


def read_where(scan: Scan, condition: Condition, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows that pass, in batches as the scan shows them."""
    schema = scan.snapshot.manifest.schema
    query = BoundQuery(scan, scan.projection.arrow, schema, condition).over(scan.tasks)
    return read_query_batches(query, batch_rows)


def _where(scan: TableScan, predicate: Predicate) -> TableScan:
    snapshot = scan.scan.snapshot
    return replace(scan, condition=bind_condition(snapshot, predicate, snapshot.manifest.schema))


def _every_column(snapshot: Snapshot) -> pa.Schema:
    return every_column(snapshot, snapshot.manifest.schema)


def _type_at(schema: pa.Schema, path: Sequence[str]) -> pa.DataType | None:
    """Return the type of a column or of a field inside it; None if there is none."""
    here = pa.struct(list(schema))
    for name in path:
        number = here.get_field_index(name) if pa.types.is_struct(here) else -1
        if number < 0:
            return None
        here = here.field(number).type
    return here
