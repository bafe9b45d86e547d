"""Sorting: rows in the order of some columns (``order_by``).

Where a limit is given, no more rows than it names are held at a time (and a batch or two): first just
the columns that the order goes by are read, and the rest for the rows that come out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.units import MIB
from pennon.encoding.exact_batches import exact_table
from pennon.encoding.large_columns import take_rows as rows_of
from pennon.errors import UnsupportedError
from pennon.expr.tree import Column, Expression
from pennon.expr.types import plain
from pennon.scan.plan.query import BoundQuery, ColumnOrdering
from pennon.scan.plan.take_plan import TakePlan
from pennon.scan.projection import MetaColumn, plan_scan_projection
from pennon.scan.read.arrays import int64_array
from pennon.scan.read.compute import Computed
from pennon.scan.run.filter import read_filtered_batches, read_filtered_table
from pennon.scan.run.take import take_addresses, take_batches, take_stored
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Schema
from pennon.schema.project import resolve

_KEY: Final = "\0order "
"""Columns of this name hold what the order goes by; no column of a table is called so."""
ROWS_HELD: Final = 1 << 16
"""Rows that are gathered, at least, before the last ones of them are dropped ..."""
BYTES_HELD: Final = 64 * MIB
"""... unless they are as large as this."""
_KEYS_HAVE_PLACES: Final = int(pa.__version__.partition(".")[0]) >= 25
"""Whether pyarrow takes the place of NULLs with each key."""


def sort_keys(
    schema: Schema, orderings: Sequence[ColumnOrdering], *, keeps_dictionaries: bool = False
) -> dict[str, Expression]:
    """Return what to compute for each ordering; with ``keeps_dictionaries`` their items are not written out.

    Raises ArgumentError for a column that is not there, UnsupportedError for one without an order.
    """
    keys: dict[str, Expression] = {}
    for number, ordering in enumerate(orderings):
        path = resolve(schema, ordering.column_name)
        stored = field_to_arrow(path[-1]).type
        is_kept = keeps_dictionaries and pa.types.is_dictionary(stored)
        kind = stored if is_kept else plain(stored)
        if pa.types.is_nested(kind):
            message = f"rows cannot be sorted by {ordering.column_name!r}, which is {kind}"
            raise UnsupportedError(message)
        keys[f"{_KEY}{number}"] = Column(tuple(field.name for field in path), kind)
    return keys


def read_in_order(query: BoundQuery) -> pa.Table:
    """Return the rows of a query in its order, those that limit and offset leave.

    Rows that are equal stay in the order of the table.
    """
    orderings, offset, limit = query.orderings, query.offset, query.limit
    keys = sort_keys(query.source, orderings, keeps_dictionaries=True)
    if limit is None or query.scan.with_deleted:
        found = sort_rows(read_filtered_table(_with_keys(query, keys)), orderings)
        return found.select(query.schema.names).slice(offset, limit)
    addressed = plan_scan_projection(query.source, [], [MetaColumn.ROW_ADDRESS])
    lean = replace(query, scan=replace(query.scan, projection=addressed), computed=None)
    lean = _with_keys(replace(lean, schema=addressed.arrow), keys)
    first = _first(read_filtered_batches(lean, ROWS_HELD), lean.schema, orderings, offset + limit)
    addresses = first.column(MetaColumn.ROW_ADDRESS.value).slice(offset).to_numpy()
    return take_rows(query, np.asarray(addresses, np.uint64))


def with_sort_keys(query: BoundQuery) -> BoundQuery:
    """Return a query that shows what its order goes by, too."""
    return _with_keys(query, sort_keys(query.source, query.orderings, keeps_dictionaries=True))


def _with_keys(query: BoundQuery, keys: dict[str, Expression]) -> BoundQuery:
    expressions = {**(query.computed.expressions if query.computed else {}), **keys}
    fields = [pa.field(name, each.type) for name, each in keys.items()]
    shown = pa.schema([*query.schema, *fields], query.schema.metadata)
    return replace(query, computed=Computed.of(expressions, query.source), schema=shown)


def _first(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    orderings: Sequence[ColumnOrdering],
    count: int,
) -> pa.Table:
    """Return the first ``count`` rows in order."""
    held = hold_few(batches, count, lambda table: sort_rows(table, orderings).slice(0, count))
    return sort_rows(pa.Table.from_batches(held, schema), orderings).slice(0, count)


def hold_few(
    batches: Iterable[pa.RecordBatch], count: int, cut: Callable[[pa.Table], pa.Table]
) -> list[pa.RecordBatch]:
    """Return the rows that are left when rows are cut each time that many are held; the last ones are not cut.

    ``cut`` returns the first ``count`` rows in some order, or all if there are fewer.
    """
    held: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if rows >= max(2 * count, ROWS_HELD) or (rows >= 2 * count and size_bytes >= BYTES_HELD):
            held = exact_table(cut(pa.Table.from_batches(held))).to_batches()
            rows, size_bytes = min(rows, count), 0
    return held


def sort_rows(table: pa.Table, orderings: Sequence[ColumnOrdering]) -> pa.Table:
    """Return rows with sort keys in order; those that are equal stay in the order they have."""
    keys = pa.table(
        [total_order(table.column(f"{_KEY}{n}")) for n in range(len(orderings))], _names(table)
    )
    order = [
        (
            name,
            "ascending" if ordering.ascending else "descending",
            "at_start" if ordering.nulls_first else "at_end",
        )
        for name, ordering in zip(keys.column_names, orderings, strict=True)
    ]
    return rows_of(table, sort_indices(keys, order).to_numpy().astype(np.int64))


def sort_indices(table: pa.Table, keys: Sequence[tuple[str, str, str]]) -> pa.Array[Any]:
    """Return the numbers of rows in the order of their keys; equal rows stay as they are.

    A key is a column, ``ascending`` or ``descending``, and where its NULLs go: ``at_start`` or ``at_end``.
    pyarrow before 25 knows one place for all keys, so a column of its own says there which values are NULL.
    """
    if _KEYS_HAVE_PLACES:
        return pc.sort_indices(table, sort_keys=list(keys))
    order: list[Any] = []
    for name, direction, place in keys:
        if table.column(name).null_count:
            is_null = table.column(name).is_null().cast(pa.int8())
            table = table.append_column(f"{name} is null", is_null)
            order.append((f"{name} is null", "descending" if place == "at_start" else "ascending"))
        order.append((name, direction))
    return pc.sort_indices(table, sort_keys=order)


def _names(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if name.startswith(_KEY)]


def total_order(values: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Return values that sort as these do: floats as whole numbers, dictionaries as the ranks of their items.

    NaN is above all numbers, whatever its sign (`pennon.expr.float_order`).  -0.0 comes right before 0.0.
    """
    if pa.types.is_dictionary(values.type):
        return _ranks(values)
    if not pa.types.is_floating(values.type):
        return values
    wide = pc.cast(values, pa.float64())
    one_nan = pc.if_else(pc.is_nan(wide), math.nan, wide)
    bits = pc.fill_null(one_nan, 0.0).to_numpy().view(np.int64)
    ordered = np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)
    nulls = pa.scalar(None, pa.int64())
    return pc.if_else(pc.is_valid(values), pa.chunked_array([int64_array(ordered)]), nulls)


def _ranks(values: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Return the place of each value among the items of its dictionary; equal items have one place."""
    if not values.num_chunks:
        return pa.chunked_array([], pa.int64())
    chunks = values.unify_dictionaries().chunks
    items = total_order(pa.chunked_array([chunks[0].dictionary]))
    ranks = pc.rank(items, tiebreaker="min").cast(pa.int64())
    ranks = pc.if_else(pc.is_valid(items), ranks, pa.scalar(None, pa.int64()))
    return pa.chunked_array([ranks.take(chunk.indices) for chunk in chunks], pa.int64())


def take_rows(query: BoundQuery, addresses: np.ndarray[Any, np.dtype[np.uint64]]) -> pa.Table:
    """Return the columns of a query for rows at addresses, in the order of these."""
    snapshot = query.scan.snapshot
    shown = pa.Table.from_batches([each.batch() for each in take_stored(query, addresses)])
    if query.computed is None:
        return shown
    plan = TakePlan(query.computed.inputs)
    inputs = take_batches(lambda at: take_addresses(snapshot, plan, at), addresses)
    columns = {name: shown.column(name) for name in shown.column_names}
    computed = [
        query.computed.run([[column] for column in batch.columns], batch.num_rows)
        for batch in inputs
    ]
    for name, expression in query.computed.expressions.items():
        chunks = [chunk for part in computed for chunk in part[name]]
        columns[name] = pa.chunked_array(chunks, expression.type)
    return pa.Table.from_arrays([columns[name] for name in query.schema.names], schema=query.schema)
