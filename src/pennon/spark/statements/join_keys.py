"""Rows that no join will find a partner for: the keys of a small table limit what is read of a large one.

In ``FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand = 'Brand#23'`` the driver reads the keys of the parts that pass,
which are few, and the scan of the line items gets them as a condition, as if the query said ``l_partkey IN (…)``.  A table that
was limited so may limit another one: nations limit suppliers, and these their orders.

Only joins that drop rows without a partner count, of columns of one type whose values mean the same to Arrow and Spark.
Spark still joins all rows that come out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as st

from pennon.expr.tree import Column, is_among
from pennon.scan.read.tasks import live_row_counts, plan_tasks
from pennon.spark.source.scan_task import arrow_schema_of, plan_table_scan
from pennon.spark.statements.pushing import scan_predicate
from pennon.spark.types import INTEGERS, arrow_schema, is_plain_text, spark_schema

if TYPE_CHECKING:
    from pennon.scan.snapshot import Snapshot
    from pennon.spark.statements.table_view import TableView

MOST_SOURCE_ROWS: Final = 300_000
"""The driver reads keys only from tables with at most this many rows."""
MOST_KEYS: Final = 20_000
"""The most keys that limit another table: each batch of its rows is looked up in the set of keys."""
LEAST_LIMITED_ROWS: Final = 1_000
"""A table of fewer rows is read as it is."""
LARGEST_SHARE: Final = 0.5
"""Keys limit another table if no more than this share of the small table's rows passes."""
_KINDS: Final = (*INTEGERS, st.DateType, st.TimestampType, st.TimestampNTZType)


def limited_by_keys(views: Sequence[TableView]) -> list[TableView]:
    """Return the views; where another view of the query has few of a view's keys, it reads the rows with these keys."""
    found = {id(view): view for view in views}
    rows = {
        id(view): sum(live_row_counts(view.snapshot)) for view in views if view.pushed.equalities
    }
    smallest_first = sorted(
        (each for each in views if id(each) in rows), key=lambda each: rows[id(each)]
    )
    for view in smallest_first:
        if not _may_limit(found[id(view)], rows[id(view)]):
            continue
        read: dict[str, pa.Array[Any] | None] = {}
        for other, own, others in _joined(view, smallest_first):
            if rows[id(other)] < max(LEAST_LIMITED_ROWS, rows[id(view)]):
                continue
            if own not in read:
                read[own] = _keys(found[id(view)], own, rows[id(view)])
            keys = read[own]
            if keys is not None:
                found[id(other)] = _limited(found[id(other)], others, keys, view)
    return [found[id(view)] for view in views]


def _may_limit(view: TableView, rows: int) -> bool:
    return view.pushed.predicate is not None and view.match is None and rows <= MOST_SOURCE_ROWS


def _joined(view: TableView, views: Sequence[TableView]) -> Iterator[tuple[TableView, str, str]]:
    """Yield the views that a view is joined with by equality, its own column, and the column of the other one."""
    for own in view.pushed.equalities:
        for other in views:
            if other is view:
                continue
            for each in other.pushed.equalities:
                if each.part is own.part and _is_same_kind(view, own.column, other, each.column):
                    yield other, own.column, each.column


def _is_same_kind(view: TableView, own: str, other: TableView, others: str) -> bool:
    kind = _column(view.snapshot, own).dataType
    is_known = is_plain_text(kind) or isinstance(kind, _KINDS)
    return is_known and kind == _column(other.snapshot, others).dataType


def _column(snapshot: Snapshot, name: str) -> st.StructField:
    return spark_schema(pa.schema([arrow_schema_of(snapshot).field(name)])).fields[0]


def _keys(view: TableView, column: str, rows: int) -> pa.Array[Any] | None:
    """Return the values of a column in the rows that a view reads, each once; None if they are too many."""
    schema = arrow_schema(st.StructType([_column(view.snapshot, column)]))
    scan = plan_table_scan(view.snapshot, schema, None)
    if view.pushed.predicate is not None:
        scan = scan.where_predicate(view.pushed.predicate)
    most = min(rows * LARGEST_SHARE, MOST_KEYS)
    held: list[pa.Array[Any]] = [pa.nulls(0, schema.field(0).type)]
    passed = 0
    for batch in scan.read(plan_tasks(view.snapshot)):
        passed += batch.num_rows
        if passed > rows * LARGEST_SHARE:
            return None
        held.append(pc.unique(batch.column(0)))
        if sum(map(len, held)) > 2 * MOST_KEYS:
            return None
    found = pc.unique(pa.concat_arrays(held)).drop_null()
    return found if len(found) <= most else None


def _limited(view: TableView, column: str, keys: pa.Array[Any], by: TableView) -> TableView:
    condition = is_among(Column((column,), keys.type), keys)
    text = f"{column} among {len(keys)} keys of {by.reference.place.title}"
    conditions = (*view.pushed.conditions, condition)
    pushed = replace(
        view.pushed,
        predicate=scan_predicate(view.snapshot, conditions),
        conditions=conditions,
        texts=(*view.pushed.texts, text),
    )
    return replace(view, pushed=pushed)
