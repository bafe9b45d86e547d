"""Counts, and the least and the greatest value, of a whole column: what statistics know is not read.

NaN is greater than all other numbers; NULLs are counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError, ColumnTypeError
from pennon.index.scalar import zone_map
from pennon.index.scalar.zone_map import described
from pennon.scan.plan.exact_bounds import split_by_statistics
from pennon.scan.projection import plan_scan_projection
from pennon.scan.read.execute import READ_AHEAD_BYTES, Scan, read_batches
from pennon.scan.read.tasks import default_batch_rows, live_row_counts, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field
from pennon.schema.project import quoted, resolve
from pennon.schema.width import row_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """The aggregates of a column; without values, the least and the greatest are NULL."""

    rows: int
    nulls: int
    least: pa.Scalar
    greatest: pa.Scalar


def summary_of(snapshot: Snapshot, column: Field) -> Summary:
    """Return the summary of a column of plain values; rows are read where no statistics know them exactly."""
    known, rest = split_by_statistics(snapshot, plan_tasks(snapshot), [column])
    projection = plan_scan_projection(snapshot.manifest.schema, [quoted(column.name)])
    kind = projection.arrow.field(0).type
    rows = sum(each.rows for each in known)
    nulls = sum(each.columns[column.name].nulls for each in known)
    ends: list[pa.Array[Any]] = [each.columns[column.name].ends for each in known if each.rows]
    scan = Scan(snapshot, projection, tuple(rest))
    size = default_batch_rows(row_bytes(projection.arrow))
    for batch in read_batches(scan, size, READ_AHEAD_BYTES, may_cut=True):
        low, high, missing, _ = described(batch.column(0))
        rows += batch.num_rows
        nulls += missing
        ends.append(pa.array([low, high], kind))
    low, high, _, _ = described(pa.concat_arrays([pa.nulls(0, kind), *ends]))
    return Summary(rows, nulls, low, high)


_FUNCTIONS: Final[Mapping[str, Callable[[Summary], Any]]] = {
    "count": lambda found: found.rows - found.nulls,
    "null_count": lambda found: found.nulls,
    "min": lambda found: found.least.as_py(),
    "max": lambda found: found.greatest.as_py(),
}


def aggregates_of(
    snapshot: Snapshot, measures: Mapping[str, str | Sequence[str]]
) -> dict[str, Any]:
    """Return aggregates of all rows, by names such as ``min(price)``; see `LanceDataset.aggregate`.

    Raises ArgumentError for a column or a function that there is not, ColumnTypeError for a column whose values
    have no order.
    """
    found: dict[str, Any] = {}
    for column, functions in measures.items():
        names = [functions] if isinstance(functions, str) else list(functions)
        known = ["count"] if column == "*" else list(_FUNCTIONS)
        for name in names:
            if name not in known:
                message = (
                    f"no aggregate {name!r} of column {column!r}; there are {', '.join(known)}"
                )
                raise ArgumentError(message)
        if column == "*":
            found["count(*)"] = sum(live_row_counts(snapshot))
            continue
        summary = summary_of(snapshot, _ordered(snapshot, column))
        found |= {f"{name}({column})": _FUNCTIONS[name](summary) for name in names}
    return found


def _ordered(snapshot: Snapshot, column: str) -> Field:
    path = resolve(snapshot.manifest.schema, quoted(column))
    kind = field_to_arrow(path[0]).type
    if not zone_map.KIND.takes(kind):
        message = f"column {column!r} of {kind} has values without an order: no aggregates"
        raise ColumnTypeError(message)
    return path[0]
