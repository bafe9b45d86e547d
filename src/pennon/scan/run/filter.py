"""Running a planned query; above all one with a condition, or with columns that are computed.

Each unit is read in two steps.  First the columns that the condition needs; then, for the rows that
it kept, the columns that are still missing, as `pennon.scan.read.late_materialization` finds it cheapest.  A column that
is needed in both is read once.

::

    unit     rows of one fragment       filter columns of all rows  ->  Kept
    piece    rows of a unit that passed, so many as fit             ->  the columns that are shown

Most units are one piece, and the thread that tested the unit reads on.  Where the columns behind the
filter are so wide that they do not fit, what is kept of a unit is cut, and its pieces are read one
after the other, some ahead of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import Final, TypeVar

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import decoded
from pennon.core.thread_places import processors
from pennon.core.units import KIB, MIB
from pennon.scan.plan.query import BoundQuery
from pennon.scan.plan.take_plan import plan_projection
from pennon.scan.predicate import limit_batches
from pennon.scan.read.arrays import column_of
from pennon.scan.read.batches import cut_batches
from pennon.scan.read.execute import (
    MAPPED_UNIT_BYTES,
    READ_AHEAD_BYTES,
    SMALL_JOB_BYTES,
    SMALL_JOB_UNITS,
    Reading,
    read_batches,
    read_table,
)
from pennon.scan.read.fragment_reader import Chunks
from pennon.scan.read.late_materialization import slice_chunks
from pennon.scan.read.tasks import LEAST_UNIT_BYTES, RunTask, Unit
from pennon.scan.run.filter_unit import (
    MASK_BYTES,
    Columns,
    Kept,
    UnitFilter,
    share_of,
    width_share,
)
from pennon.scan.run.take import take_chosen

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Sizes:
    """The number of rows and bytes to work on at once.

    A unit has at most ``rows``, and ``tested_bytes`` of the columns that the condition needs; a piece
    has at most ``piece_bytes`` of the columns behind them, and ``span_bytes`` from its first to its
    last row: about so much of a map becomes resident.
    """

    tested_bytes: int
    piece_bytes: int
    rows: int
    span_bytes: int


STREAMED: Final = Sizes(1 * MIB, 2 * MIB, 1 << 17, 16 * MIB)
"""Where batches go by, they are small, and so is what is held of them."""
FAR: Final = Sizes(1 * MIB, 2 * MIB, 1 << 17, 6 * MIB)
"""The same of a remote store: all rows of a span are held, as they came and as they become.

With spans of 8 MiB, a filter that keeps a tenth of 2 GB of text held 400 to 419 MB; with 6 MiB it holds 374 to 378."""
WHOLE: Final = Sizes(4 * MIB, 8 * MIB, 1 << 20, 1 << 62)
"""Where all is held anyway, or nothing, as for a count."""
UNEVEN: Final = 1.25
"""A unit may have so many times what is fair for a thread: to cut off the rest would cost more."""
WIDE_BYTES: Final = 1 * KIB
"""Rows as wide as this are copied more than they are decoded."""
COPIED_BYTES: Final = 4 * MIB
"""To copy less than this of them takes no longer than to hand it to another thread."""
SHORT_BYTES: Final = 3584 * KIB
"""Rows of so many bytes are tested, and read, in a millisecond, most of which is Python's; to hand parts to threads takes as long."""
FIRST_ROWS: Final = 1 << 14
"""Rows of the first unit of a scan that ends when it has found enough."""


TAKEN_ROWS: Final = 1024
"""So few rows are taken, where indices say that they pass: to plan more than that would take longer than to read."""


FEW_TAKEN: Final = 64
"""The most fragments whose rows are taken; neighbours among more fragments are read as one."""


def read_query(query: BoundQuery) -> pa.Table:
    """Return the rows of a planned query that has no order, each column chunked as it was decoded."""
    if query.is_plain:
        return read_table(query.scan)
    found = read_filtered_table(query)
    return found if query.condition is None else found.slice(query.offset)


def read_query_batches(
    query: BoundQuery,
    batch_rows: int,
    read_ahead_bytes: int = READ_AHEAD_BYTES,
    *,
    may_cut: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a planned query that has no order; ``may_cut`` see `read_batches`."""
    if query.is_plain:
        return read_batches(query.scan, batch_rows, read_ahead_bytes, may_cut=may_cut)
    found = read_filtered_batches(query, batch_rows, read_ahead_bytes)
    if query.condition is None:  # the plan has cut the rows already
        return found
    return limit_batches(found, query.offset, query.limit)


def count_query(query: BoundQuery) -> int:
    """Return how many rows of a planned query come out; without a condition no column is read."""
    if query.condition is None:
        return query.scan.rows
    counting = query.counting()
    if query.most is None:
        found = _Run(counting, READ_AHEAD_BYTES, WHOLE).count()
    else:
        found = read_filtered_table(counting).num_rows
    return max(found - query.offset, 0)


def read_filtered_table(query: BoundQuery) -> pa.Table:
    """Return all rows, each column chunked as it was decoded."""
    if _is_taken(query):
        plan = plan_projection(query.snapshot, query.scan.projection)
        found = _table(take_chosen(query.snapshot, plan, query.scan.tasks), query.schema)
        return found.slice(0, query.most)
    columns: list[Chunks] = [[] for _ in query.schema]
    rows = 0
    run = _Run(query, READ_AHEAD_BYTES, WHOLE)
    for count, read in run.read_one() if run.is_one_unit else run.read():
        rows += count
        for column, chunks in zip(columns, read, strict=True):
            column.extend(chunks)
    if not columns:
        batches = cut_batches([], [rows], max(rows, 1), query.schema)
        return pa.Table.from_batches(batches, query.schema)
    return _table(columns, query.schema)


def _is_taken(query: BoundQuery) -> bool:
    """Return whether indices say of few rows of mapped files that just these pass: there is nothing to test."""
    scan = query.scan
    if len(scan.tasks) > FEW_TAKEN:
        return False
    is_simple = query.computed is None and query.snapshot.meter is None and scan.projection.columns
    if not is_simple or scan.is_remote or scan.rows > TAKEN_ROWS:
        return False
    return all(task.chosen is not None and task.chosen.pass_all for task in scan.tasks)


def _table(columns: Sequence[Chunks], schema: pa.Schema) -> pa.Table:
    pairs = zip(columns, schema, strict=True)
    return pa.Table.from_arrays([column_of(c, f.type) for c, f in pairs], schema=schema)


def read_filtered_batches(
    query: BoundQuery, batch_rows: int, read_ahead_bytes: int = READ_AHEAD_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of ``batch_rows``, fewer where what was read together ends."""
    sizes = FAR if query.scan.is_remote else STREAMED
    with closing(_Run(query, read_ahead_bytes, sizes).read()) as pieces:
        for rows, columns in pieces:
            yield from cut_batches(columns, [rows], batch_rows, query.schema)
            del columns  # not held while the next piece is waited for


class _Run:
    """One run of a scan."""

    def __init__(self, query: BoundQuery, read_ahead_bytes: int, sizes: Sizes) -> None:
        self._query = query
        self._sizes = sizes
        self._is_streamed = sizes is not WHOLE
        share = share_of(query) if self._is_streamed else width_share(query)
        self._reading = Reading.of(query.scan, share, is_streamed=self._is_streamed)
        self._filter = UnitFilter(query, self._reading, decoded if self._is_streamed else None)
        self._budget = read_ahead_bytes
        if not (self._is_streamed or query.scan.is_remote):
            self._budget = min(read_ahead_bytes, processors() * MAPPED_UNIT_BYTES)
        self._stays_here = not self._is_streamed and self._is_short()

    def _is_short(self) -> bool:
        """Tell whether all is done sooner than threads could share it."""
        if self._reading.is_remote or self._query.most is not None:
            return False  # of a limit, nothing is asked of files that may not be read
        size = 0
        for number, task in enumerate(self._reading.tasks):
            row_bytes = max(self._filter.row_bytes(number), self._filter.tested_bytes(number))
            size += task.rows * row_bytes
            if size > SHORT_BYTES:
                return False
        return True

    def _map(
        self, work: Callable[[T], R], items: Iterable[T], cost: Callable[[T], int]
    ) -> Generator[R, None, None]:
        """Yield what the work gives for each item, worked on ahead unless this thread does it all."""
        if self._stays_here:
            return (work(item) for item in items)
        reading = self._reading
        in_order = reading.stream_in_order if self._is_streamed else reading.map_in_order
        return in_order(work, items, cost, self._budget)

    def read(self) -> Generator[Columns, None, None]:
        """Yield what is found, in order, until it is enough."""
        left = self._query.most
        if left == 0:
            return
        for rows, columns in chain.from_iterable(map(self._pieces, self._found())):
            if left is not None and rows >= left:
                yield left, [slice_chunks(chunks, 0, left) for chunks in columns]
                return
            yield rows, columns
            left = None if left is None else left - rows

    @property
    def is_one_unit(self) -> bool:
        """Return whether there is but one unit, and so small that nothing is to be planned."""
        reading = self._reading
        if len(reading.tasks) != 1 or self._query.most is not None:
            return False
        return reading.tasks[0].rows * self._filter.row_bytes(0) <= LEAST_UNIT_BYTES

    def read_one(self) -> list[Columns]:
        """Return what is found in the one unit that there is."""
        (task,) = self._reading.tasks
        kept = self._filter.test(Unit(0, task.start, task.end))
        return [self._filter.read(kept)] if kept is not None and len(kept.physical) else []

    def count(self) -> int:
        """Return how many rows pass."""

        def work(job: list[Unit]) -> int:
            return sum(self._filter.count(unit) for unit in job)

        with closing(self._map(work, self._jobs(), self._cost)) as counts:
            return sum(counts)

    # --- units ------------------------------------------------------------------------------------

    def _found(self) -> Iterator[Columns | Kept]:
        """Yield what is found in each unit, the units that come next being read meanwhile."""
        jobs = self._jobs()
        if self._query.most is not None:  # the first unit may be enough
            yield from chain.from_iterable(map(self._work, islice(jobs, 1)))
        with closing(self._map(self._work, jobs, self._cost)) as results:
            for found in results:
                yield from found

    def _work(self, job: list[Unit]) -> list[Columns | Kept]:
        """Test units; read on where what they keep is one piece."""
        found: list[Columns | Kept] = []
        for unit in job:
            kept = self._filter.test(unit)
            if kept is None:
                continue
            if self._is_piece(kept):
                found.append(self._filter.read(kept))
            elif len(kept.physical):
                found.append(kept)
        return found

    def _jobs(self) -> Iterator[list[Unit]]:
        """Yield the units, small ones together; alone go those of a remote store, and the first that may be enough."""
        job: list[Unit] = []
        size = 0
        is_first = self._query.most is not None
        for unit in self._units():
            cost = unit.rows * self._filter.row_bytes(unit.task)
            is_full = size + cost > SMALL_JOB_BYTES or len(job) >= SMALL_JOB_UNITS
            if job and (is_full or is_first or self._reading.is_remote):
                is_first = False
                yield job
                job, size = [], 0
            job.append(unit)
            size += cost
        if job:
            yield job

    def _units(self) -> Iterator[Unit]:
        reading = self._reading
        threads = 1 if reading.is_remote or self._stays_here else processors()
        fair = int(reading.rows * UNEVEN) // threads + 1
        is_first = self._query.most is not None
        for number, task in enumerate(reading.tasks):
            start = task.start
            while start < task.end:
                rows = self._unit_rows(number, task.end - start, fair)
                rows = min(rows, FIRST_ROWS) if is_first else rows
                is_first = False
                end = min(start + rows, task.end)
                if isinstance(task, RunTask) and task.chosen is None and end < task.end:
                    end = task.fragment.near_end(start, end)
                yield Unit(number, start, end)
                start = end

    def _unit_rows(self, number: int, rows: int, fair: int) -> int:
        """Return how many of the next rows of a task make a unit: those of one task are alike."""
        row_bytes = self._filter.row_bytes(number)
        if rows * row_bytes <= LEAST_UNIT_BYTES:
            return rows
        tested = max(self._filter.tested_bytes(number), 1)
        most = max(min(self._sizes.tested_bytes // tested, self._sizes.rows), 1)
        if rows * tested <= SMALL_JOB_BYTES:  # the threads share what is kept
            return min(rows, most)
        most = min(most, max(fair, LEAST_UNIT_BYTES // row_bytes, 1))
        return -(-rows // -(-rows // most))

    def _cost(self, job: list[Unit]) -> int:
        """Return about how many bytes a job has in memory when it is done."""
        cost = 0
        for unit in job:
            whole = unit.rows * self._filter.row_bytes(unit.task)
            if whole > self._sizes.piece_bytes:
                tested = unit.rows * (self._filter.tested_bytes(unit.task) + MASK_BYTES)
                whole = min(whole, tested + self._most_bytes)
            cost += whole
        return cost

    @property
    def _most_bytes(self) -> int:
        """Return what is held while a piece is read: of a remote store, the rows in between, too."""
        if self._reading.is_remote and self._sizes.span_bytes <= READ_AHEAD_BYTES:
            return self._sizes.span_bytes
        return self._sizes.piece_bytes

    # --- pieces -----------------------------------------------------------------------------------

    def _pieces(self, found: Columns | Kept) -> Iterator[Columns]:
        if not isinstance(found, Kept):
            yield found
            return
        width, kept = max(found.fields.rest_width, 1), len(found.physical)
        count = -(-kept * width // self._piece_bytes(found))
        pieces = found.cut(-(-kept // count), max(self._sizes.span_bytes // width, 1))

        read, reading = self._filter.read, self._reading

        def cost(piece: Kept) -> int:
            rows = piece.physical
            held = int(rows[-1] - rows[0]) + 1 if reading.is_remote else len(rows)
            return min(held * piece.fields.rest_width, self._most_bytes)

        with closing(self._map(read, pieces, cost)) as results:
            yield from results

    def _is_piece(self, kept: Kept) -> bool:
        """Tell whether the columns behind the filter fit for all rows of a unit that are kept."""
        rows = kept.physical
        if len(rows) and kept.unit.rows * self._filter.row_bytes(kept.unit.task) > LEAST_UNIT_BYTES:
            width = kept.fields.rest_width
            span = int(rows[-1] - rows[0]) * width
            return len(rows) * width <= self._piece_bytes(kept) and span <= self._sizes.span_bytes
        return len(rows) > 0

    def _piece_bytes(self, kept: Kept) -> int:
        """Return how large a piece is; if there is but one unit, its pieces occupy the threads."""
        if kept.unit.rows < self._reading.rows or self._reading.is_remote:
            return self._sizes.piece_bytes
        least = COPIED_BYTES if kept.fields.rest_width >= WIDE_BYTES else LEAST_UNIT_BYTES
        return min(least, self._sizes.piece_bytes)
