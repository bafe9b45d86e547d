"""Rows that no join will find a partner for: the keys of a small table limit what is read of a large one.

In ``FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand = 'Brand#23'`` the driver reads the keys of the parts that pass,
which are few, and the scan of the line items gets them as a condition, as if the query said ``l_partkey IN (…)``.  A table that
was limited so may limit another one: regions limit nations, these their suppliers, and these their orders.  Tables of
subqueries are among them (`pennon.spark.statements.links`).

::

    smallest table first    its keys are read, of rows that pass its conditions and have keys of the tables before it
    back again              of the keys that are held, those stay that the larger tables have, too
    scans                   get the keys of the tables beside them

Only columns of one type whose values mean the same to Arrow and Spark count.  Spark still joins all rows that come out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as st

from pennon.core.units import MIB
from pennon.expr.evaluate import passing
from pennon.expr.tree import Column, Expression, is_among
from pennon.scan.read.tasks import live_row_counts, plan_tasks
from pennon.spark.source.scan_task import plan_table_scan
from pennon.spark.statements.links import Link, links_of
from pennon.spark.statements.pushing import scan_predicate
from pennon.spark.types import INTEGERS, arrow_schema, is_plain_text

if TYPE_CHECKING:
    from pennon.spark.statements.table_view import TableView

MOST_SOURCE_ROWS: Final = 2_000_000
"""The driver reads keys only from tables with at most this many rows: 20 ms of two cores."""
MOST_KEYS: Final = 300_000
"""The most rows whose keys are held, and the most keys that limit another table."""
MOST_KEY_BYTES: Final = 8 * MIB
"""The most bytes of the keys of a table."""
LEAST_LIMITED_ROWS: Final = 1_000
"""A table of fewer rows is read as it is."""
LARGEST_SHARE: Final = 0.5
"""Keys limit another table if no more than this share of the small table's rows passes."""
WORTH: Final = 8
"""Rows whose keys are read by the driver cost so many times less than rows that go to Spark and find no partner there."""
_KINDS: Final = (*INTEGERS, st.DateType, st.TimestampType, st.TimestampNTZType)


def limited_by_keys(views: Sequence[TableView]) -> list[TableView]:
    """Return the views; where another view of the query has few of a view's keys, it reads the rows with these keys."""
    links = [each for each in links_of([view.pushed.scope for view in views]) if _fits(views, each)]
    linked = {number for each in links for number in (each.source, each.target)}
    if not any(views[number].pushed.predicate is not None for number in linked):
        return list(views)
    rows = {number: sum(live_row_counts(views[number].snapshot)) for number in linked}
    if max(rows.values()) < LEAST_LIMITED_ROWS:
        return list(views)
    keys = _Keys(views, links, rows)
    keys.read()
    return [
        replace(_limited(view, keys.found_for(number)), rows=keys.known_rows(number))
        for number, view in enumerate(views)
    ]


def _fits(views: Sequence[TableView], link: Link) -> bool:
    """Return whether both columns are of one type whose values mean the same to Arrow and Spark."""
    kind = _kind(views[link.source], link.source_column)
    is_known = is_plain_text(kind) or isinstance(kind, _KINDS)
    return is_known and kind == _kind(views[link.target], link.target_column)


def _kind(view: TableView, column: str) -> st.DataType:
    scope = view.pushed.scope
    assert scope is not None
    return scope.schema[column].dataType


@dataclass(frozen=True, slots=True)
class _Limit:
    """Keys that a column of a table is limited to, and the table that they are of."""

    column: str
    keys: pa.Array[Any]
    source: TableView

    @property
    def condition(self) -> Expression:
        """Return the condition of a scan."""
        return is_among(Column((self.column,), self.keys.type), self.keys)

    @property
    def text(self) -> str:
        """Return the condition for people."""
        return f"{self.column} among {len(self.keys)} keys of {self.source.reference.place.title}"


@dataclass(slots=True)
class _Keys:
    """The keys of the rows that each table has for the query, where the driver reads them."""

    views: Sequence[TableView]
    links: Sequence[Link]
    rows: dict[int, int]
    held: dict[int, pa.RecordBatch] = field(default_factory=dict)
    limits: dict[Link, pa.Array[Any] | None] = field(default_factory=dict)
    useless: set[Link] = field(default_factory=set)
    """Links that take few of the rows that a table has without them."""

    def read(self) -> None:
        """Read the keys of all tables, the smallest first, and go back to those before."""
        order = sorted(self.rows, key=lambda number: self.rows[number])
        for number in order:
            if self._may_read(number):
                found = self._read(number)
                if found is not None:
                    self.held[number] = found
        applied = frozenset(self.limits)
        self.limits.clear()
        for number in reversed(order):
            self._reduce(number, applied)

    def known_rows(self, number: int) -> int | None:
        """Return how many rows the scan of a table gives at the most; None if that is not known."""
        held = self.held.get(number)
        return None if held is None else held.num_rows

    def found_for(self, number: int) -> list[_Limit]:
        """Return what limits the scan of a table."""
        if self.rows.get(number, 0) < LEAST_LIMITED_ROWS:
            return []
        return list(self._limits(number))

    def _limits(self, number: int) -> Iterator[_Limit]:
        for link in self.links:
            if link.target != number or link.source not in self.held or link in self.useless:
                continue
            limit = self._limit(link)
            if limit is not None:
                yield limit

    def _limit(self, link: Link) -> _Limit | None:
        if link not in self.limits:
            self.limits[link] = self._keys(link)
        keys = self.limits[link]
        return None if keys is None else _Limit(link.target_column, keys, self.views[link.source])

    def _keys(self, link: Link) -> pa.Array[Any] | None:
        """Return the keys of a link; None if too many of the target's rows are likely to have one of them."""
        rows = self.rows[link.source]
        held = self.held[link.source]
        if held.num_rows > rows * LARGEST_SHARE:
            return None
        keys = _each_once(held.column(link.source_column))
        return keys if len(keys) <= min(rows, self.rows[link.target]) * LARGEST_SHARE else None

    # --- what is read ---------------------------------------------------------------------------

    def _may_read(self, number: int) -> bool:
        view, rows = self.views[number], self.rows[number]
        if rows > MOST_SOURCE_ROWS or view.pushed.limit is not None:
            return False
        if view.pushed.predicate is None and not any(True for _ in self._limits(number)):
            return False
        targets = {each.target for each in self.links if each.source == number} - {number}
        return rows <= WORTH * sum(map(self._likely_rows, targets))

    def _likely_rows(self, number: int) -> int:
        known = self.known_rows(number)
        return self.rows[number] if known is None else known

    def _read(self, number: int) -> pa.RecordBatch | None:
        """Return the columns of a table that are joined, of its rows that count; None if they are too many."""
        view = self.views[number]
        assert view.pushed.scope is not None
        columns = [each.source_column for each in self.links if each.source == number]
        columns += [each.target_column for each in self.links if each.target == number]
        fields = [view.pushed.scope.schema[name] for name in dict.fromkeys(columns)]
        schema = arrow_schema(st.StructType(fields))
        scan = plan_table_scan(view.snapshot, schema, None)
        predicate = _limited(view, list(self._limits(number))).pushed.predicate
        if predicate is not None:
            scan = scan.where_predicate(predicate)
        most = min(max(self.rows[number] * LARGEST_SHARE, LEAST_LIMITED_ROWS), MOST_KEYS)
        held: list[pa.RecordBatch] = []
        passed = size = 0
        for batch in scan.read(plan_tasks(view.snapshot)):
            held.append(batch)
            passed, size = passed + batch.num_rows, size + batch.nbytes
            if passed > most or size > MOST_KEY_BYTES:
                return None
        table = pa.Table.from_batches(held, schema).combine_chunks()
        return next(iter(table.to_batches()), pa.RecordBatch.from_pylist([], schema))

    def _reduce(self, number: int, applied: frozenset[Link]) -> None:
        """Leave out the rows of a table for which another one, that was read later, has no partner."""
        for link in self.links:
            held = self.held.get(number)
            is_new = link.target == number and link not in applied and link.source in self.held
            limit = self._limit(link) if is_new and held is not None else None
            if limit is None or held is None:
                continue
            left = held.filter(passing(limit.condition, held))
            if left.num_rows > held.num_rows * LARGEST_SHARE:
                self.useless.add(link)
            else:
                self.held[number] = left


def _each_once(values: pa.Array[Any]) -> pa.Array[Any]:
    """Return values without NULLs, each once."""
    if pa.types.is_integer(values.type) and not values.null_count:
        numbers = values.to_numpy()
        if bool(np.all(numbers[1:] > numbers[:-1])):
            return values
    return pc.unique(values).drop_null()


def _limited(view: TableView, limits: Sequence[_Limit]) -> TableView:
    """Return a view that reads only rows whose columns have some keys."""
    if not limits:
        return view
    pushed = view.pushed
    conditions = (*pushed.conditions, *(each.condition for each in limits))
    texts = (*pushed.texts, *(each.text for each in limits))
    predicate = scan_predicate(view.snapshot, conditions, " AND ".join(texts))
    return replace(
        view, pushed=replace(pushed, predicate=predicate, conditions=conditions, texts=texts)
    )
