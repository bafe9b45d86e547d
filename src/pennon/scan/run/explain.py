"""The plan of a scan as text, and what came of it.

The lines stand as the rows flow: from the bottom up, each line below what it feeds::

    Limit: limit=10
      Sort: price DESC NULLS LAST
        Read: columns=[name], just the rows that are kept
          Filter: price > 3
            Scan: uri=table.lance, columns=[price], fragments=2 of 2, rows=40 of 1000
              ScalarIndexQuery: query=[price > 3]@price_idx(BTree)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pennon.encoding.rows import Rows
from pennon.errors import printable
from pennon.scan.metrics import Meter
from pennon.scan.plan.filter_columns import FieldPlan
from pennon.scan.plan.query import BoundQuery, lookup_of, plan_query
from pennon.scan.read.late_materialization import rows_of
from pennon.scan.read.tasks import live_row_counts
from pennon.scan.run.filter_unit import plan_fields
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
    rows: int
    seconds: float


def explain(uri: str, query: BoundQuery, *, verbose: bool, found: Findings | None = None) -> str:
    """Return the plan; ``verbose`` with the rows of each fragment, and how its columns are read.

    For the latter the ends of the first `MOST_DESCRIBED` fragments' files are read.
    """
    lines = [line for line in _lines(uri, query, found) if line]
    text = text_of_lines("  " * depth + line for depth, line in enumerate(lines))
    if not verbose:
        return text
    indent = "  " * len(lines)
    tasks = range(len(query.scan.tasks))
    return text + text_of_lines(
        indent + line for number in tasks for line in _fragment_lines(query, number)
    )


def text_of_lines(lines: Iterable[str]) -> str:
    """Return the lines of a plan as text; control characters in names are escaped."""
    return "".join(printable(line) + "\n" for line in lines)


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
    found = Findings(asked, before, behind, rows, time.perf_counter() - began)
    head = f"Scanned: rows={rows}, elapsed={found.seconds * 1000:.3f}ms\n"
    return head + explain(uri, query, verbose=False, found=found)


def _lines(uri: str, query: BoundQuery, found: Findings | None) -> Iterator[str]:
    fields = plan_fields(query)
    yield _limit(query) if query.condition is not None or query.orderings else ""
    yield _sort(query)
    if query.computed is not None:
        yield f"Compute: {', '.join(query.computed.expressions)}"
    if query.condition is not None:
        if fields.rest:
            read = metrics(found.behind) if found else ""
            yield f"Read: columns={_names(fields.rest)}, {_how(fields)}{read}"
        kept = f", metrics=[rows_kept={found.before.rows_kept}]" if found else ""
        yield f"Filter: {query.condition.predicate}{kept}"
    yield _scan(uri, query, fields, found)
    lookup = lookup_of(query)
    if lookup is not None:
        yield f"ScalarIndexQuery: query={lookup}{index_metrics(found.asked) if found else ''}"


def _scan(uri: str, query: BoundQuery, fields: FieldPlan, found: Findings | None) -> str:
    scan = query.scan
    table = scan.snapshot.manifest.fragments
    count, rows = (
        len({task.fragment.id for task in scan.tasks}),
        sum(live_row_counts(scan.snapshot)),
    )
    columns = fields.early if query.condition is not None else (*fields.early, *fields.rest)
    text = (
        f"Scan: uri={uri}, columns={_names(columns)}, "
        f"fragments={count} of {len(table)}, rows={scan.rows} of {rows}"
    )
    if found is None:
        return text
    is_behind = query.condition is None and query.computed is not None
    return text + metrics(found.behind if is_behind else found.before)


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


def _sort(query: BoundQuery) -> str:
    if not query.orderings:
        return ""
    return "Sort: " + ", ".join(map(str, query.orderings))


def _limit(query: BoundQuery) -> str:
    parts = [f"limit={query.limit}"] if query.limit is not None else []
    parts += [f"offset={query.offset}"] if query.offset else []
    return f"Limit: {', '.join(parts)}" if parts else ""


def _how(fields: FieldPlan) -> str:
    if all(fields.exact):
        return "just the rows that are kept"
    return "for the rows that are kept, and those between where it costs less"


def _names(fields: Sequence[Field]) -> str:
    return f"[{', '.join(field.name for field in fields)}]"


def index_metrics(meter: Meter) -> str:
    """Return what was read of indices, and how many rows they named."""
    return (
        f", metrics=[indices_loaded={meter.indices_loaded}, parts_loaded={meter.parts_loaded}, "
        f"rounds={meter.index_rounds}, bytes_read={meter.index_bytes}, "
        f"rows={meter.index_rows}, index_comparisons={meter.compared}]"
    )


def metrics(meter: Meter) -> str:
    """Return what was read."""
    return (
        f", metrics=[files={meter.files}, pages={meter.pages}, rounds={meter.rounds}, "
        f"requests={meter.requests}, bytes_asked={meter.asked_bytes}, bytes_read={meter.read_bytes}]"
    )
