"""The plan of a scan of pages, and what was measured of one that ran.

The lines stand as the rows flow: from the bottom up, each line below what it feeds::

    Limit: limit=10
      Sort: price DESC NULLS LAST
        Read: projection=[name], just the rows that are kept
          LanceRead: uri=table.lance, projection=[price], fragments=2 of 2, rows=40 of 1000, full_filter=price > 3
            ScalarIndexQuery: query=[price > 3]@price_idx(BTree)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pennon.encoding.rows import Rows
from pennon.scan.metrics import Meter
from pennon.scan.plan.filter_columns import FieldPlan
from pennon.scan.plan.query import BoundQuery, lookup_of, plan_query
from pennon.scan.read.late_materialization import rows_of
from pennon.scan.read.tasks import live_row_counts
from pennon.scan.run.filter_unit import plan_fields
from pennon.scan.run.plan_steps import (
    Compute,
    Limit,
    Plan,
    QueryScalarIndices,
    ReadKept,
    ScanPages,
    Sort,
    chained,
)
from pennon.schema.field import Field
from pennon.table.fragment import Fragment

MOST_DESCRIBED: Final = 64
"""Of more fragments only the rows are told: a table may have a million."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The measurements of a scan that ran."""

    asked: Meter
    """What was read of indices."""
    before: Meter
    """What was read for all rows."""
    behind: Meter
    """What was read for those that the condition kept."""


def explain(uri: str, query: BoundQuery, *, verbose: bool) -> Plan:
    """Return the plan of a query; ``verbose`` with the rows of each fragment, and how its columns are read.

    For the latter the ends of the first `MOST_DESCRIBED` fragments' files are read.
    """
    numbers = range(len(query.scan.tasks)) if verbose else ()
    lines = [Plan(line) for number in numbers for line in _fragment_lines(query, number)]
    return chained([*_steps(uri, query, None)], lines)[0]


def analyze(
    uri: str,
    query: BoundQuery,
    fragments: Sequence[Fragment] | None,
    run: Callable[[BoundQuery], int],
) -> str:
    """Run a query that is not planned, and return the plan with what was measured."""
    snapshot = query.snapshot
    limits = snapshot.store.limits
    asked, before, behind = Meter(limits), Meter(limits), Meter(limits)
    began = time.perf_counter()
    scan = replace(query.scan, snapshot=snapshot.metered(asked))
    query = plan_query(replace(query, scan=scan), fragments)
    scan = replace(query.scan, snapshot=snapshot.metered(before if query.is_plain else behind))
    rows = run(replace(query, scan=scan, tested=snapshot.metered(before)))
    seconds = time.perf_counter() - began
    plan = chained([*_steps(uri, query, Findings(asked, before, behind))])[0]
    return analyzed(plan, rows, seconds)


def analyzed(plan: Plan, rows: int, seconds: float) -> str:
    """Return the text of a plan that ran, below how many rows came out, and how long it took."""
    return f"Scanned: rows={rows}, elapsed={seconds * 1000:.3f}ms\n{plan}"


def _steps(uri: str, query: BoundQuery, found: Findings | None) -> Iterator[Plan]:
    """Yield the steps, from the top down."""
    fields = plan_fields(query)
    is_cut = query.limit is not None or query.offset
    if is_cut and (query.condition is not None or query.orderings):
        yield Plan(Limit(query.limit, query.offset or None))
    if query.orderings:
        yield Plan(Sort(query.orderings))
    if query.computed is not None:
        yield Plan(Compute(tuple(query.computed.expressions)))
    if query.condition is not None and fields.rest:
        read = metrics(found.behind) if found else ""
        yield Plan(ReadKept(_names(fields.rest), _how(fields)), metrics=read)
    yield _scan(uri, query, fields, found)
    lookup = lookup_of(query)
    if lookup is not None:
        asked = index_metrics(found.asked) if found else ""
        yield Plan(QueryScalarIndices(lookup), metrics=asked)


def _scan(uri: str, query: BoundQuery, fields: FieldPlan, found: Findings | None) -> Plan:
    scan = query.scan
    snapshot = scan.snapshot
    columns = fields.early if query.condition is not None else (*fields.early, *fields.rest)
    step = ScanPages(
        uri,
        _names(columns),
        len({task.fragment.id for task in scan.tasks}),
        len(snapshot.manifest.fragments),
        scan.rows,
        sum(live_row_counts(snapshot)),
        None if query.condition is None else query.condition.predicate,
    )
    if found is None:
        return Plan(step)
    if query.condition is not None:
        before = found.before
        return Plan(step, metrics=_scan_metrics(before, before.rows_kept, before.rows_tested))
    meter = found.before if query.computed is None else found.behind
    return Plan(step, metrics=_scan_metrics(meter, scan.rows, scan.rows))


def _fragment_lines(query: BoundQuery, number: int) -> Iterator[str]:
    """Yield what is read of the fragment of a task, and how: as if all its rows were read at once."""
    task = query.scan.tasks[number]
    if task.chosen is not None:
        how = "which pass" if task.chosen.pass_all else "which are tested"
        yield f"fragment {task.fragment.id}: {task.rows} rows of indices, {how}"
        return
    yield f"fragment {task.fragment.id}: rows {task.start}..{task.end}"
    if number >= MOST_DESCRIBED:
        return
    fields, reader = plan_fields(query), query.scan.reader_of(number)
    rows = rows_of(reader.live_rows().between(task.start, task.end))
    if query.condition is None:
        fields = replace(fields, early=(*fields.early, *fields.rest), rest=())
    yield from (f"  {line}" for line in reader.describe(fields.early, rows))
    outer = Rows.at(np.unique([rows.starts[0], rows.end - 1]))
    for words, behind in (("single rows", outer), ("all rows", rows)) if fields.rest else ():
        yield f"  if {words} are kept:"
        yield from (f"    {line}" for line in reader.describe(fields.rest, behind))


def _how(fields: FieldPlan) -> str:
    if all(fields.exact):
        return "just the rows that are kept"
    return "for the rows that are kept, and those between where it costs less"


def _names(fields: Sequence[Field]) -> tuple[str, ...]:
    return tuple(field.name for field in fields)


def index_metrics(meter: Meter) -> str:
    """Return what was read of indices, and how many rows they named."""
    return (
        f", metrics=[indices_loaded={meter.indices_loaded}, parts_loaded={meter.parts_loaded}, "
        f"rounds={meter.index_rounds}, bytes_read={meter.index_bytes}, "
        f"rows={meter.index_rows}, index_comparisons={meter.compared}]"
    )


def metrics(meter: Meter) -> str:
    """Return what was read."""
    return f", metrics=[{_read(meter)}]"


def _scan_metrics(meter: Meter, output_rows: int, rows_scanned: int) -> str:
    """Return what a scan read: ``output_rows`` passed, of ``rows_scanned``."""
    rows = f"output_rows={output_rows}, {_read(meter)}, rows_scanned={rows_scanned}"
    return f", metrics=[{rows}]"


def _read(meter: Meter) -> str:
    """Return what was read, in the words and the order of pylance's plans."""
    return (
        f"files={meter.files}, pages={meter.pages}, bytes_asked={meter.asked_bytes}, "
        f"bytes_read={meter.read_bytes}, iops={meter.rounds}, requests={meter.requests}"
    )
