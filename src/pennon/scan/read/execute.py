"""Running a scan: units are decoded on threads, results come out in order.

`read_table` wants everything, so each column of each unit is decoded by itself and handed over as
chunks of a chunked array: no value is copied to make columns contiguous.  `read_batches` streams:
units are decoded a bounded number of bytes ahead of the caller, and cut into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from operator import itemgetter
from typing import TypeVar

import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import Streaming
from pennon.core.thread_places import processors
from pennon.core.thread_pools import PoolSpec, map_all, map_in_order
from pennon.core.units import KIB, MIB
from pennon.scan.deletion_mask import LiveRows
from pennon.scan.projection import Projection
from pennon.scan.read.batch_sizing import UNIT_BYTES, BatchSizer
from pennon.scan.read.batches import cut_batches, empty_batch
from pennon.scan.read.columns import Place, show_columns
from pennon.scan.read.fragment_reader import Chunks, FragmentReader, PreparedRead
from pennon.scan.read.fragment_run import FragmentRun, PreparedRun, RunReader
from pennon.scan.read.join_tasks import join_tasks
from pennon.scan.read.late_materialization import read_live
from pennon.scan.read.tasks import ReadTask, ScanTask, Unit, bytes_per_row, plan_units
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Field
from pennon.schema.width import has_width, row_bytes

T = TypeVar("T")
R = TypeVar("R")

READ_AHEAD_BYTES = 64 * MIB
MAPPED_UNIT_BYTES = 16 * MIB
"""Ahead for each processor where no request is waited for: more would only take memory."""
SMALL_JOB_BYTES = 256 * KIB
SMALL_JOB_UNITS = 64
"""Small units are read together, because to hand one to a thread costs as much as to read it."""
SLIGHT_BYTES = 32 * KIB
"""Fragments have fewer bytes than this on average where a scan is slight."""
JOB_BYTES = MIB
"""Columns of a unit that have fewer bytes than this are read together."""
MOST_GROUPS = 256
"""Groups of columns that threads read; each has to find its columns among all of the file."""
WHOLE_CHUNKS = 8192
"""Chunks of plain columns have powers of two values, so this many rows are whole chunks."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A planned scan; it pickles."""

    snapshot: Snapshot
    projection: Projection
    tasks: tuple[ScanTask, ...]
    with_deleted: bool = False
    """Whether deleted rows come out as well, without row ids."""

    @property
    def rows(self) -> int:
        """Return how many rows come out."""
        return sum(task.rows for task in self.tasks)

    @property
    def is_remote(self) -> bool:
        """Return whether the store is remote: a read waits for its answers."""
        return self.snapshot.is_remote

    def reader_of(self, task: int) -> FragmentReader:
        """Return the reader of the fragment of a task."""
        return FragmentReader(self.snapshot, self.tasks[task].fragment, self.with_deleted)


@dataclass(frozen=True, slots=True)
class Reading:
    """A scan that is run: its tasks, those of neighbouring small fragments joined."""

    scan: Scan
    tasks: tuple[ReadTask, ...]

    @classmethod
    def of(cls, scan: Scan, share: float | None = None, *, is_streamed: bool = False) -> Reading:
        """Begin to run a scan.

        ``share`` is how much of the data files is read, by default that of the shown columns; ``is_streamed``: not
        all rows that come out are held.
        """
        snapshot = scan.snapshot
        tasks: tuple[ReadTask, ...] = scan.tasks
        may_join = len(tasks) > 1 and not scan.is_remote and not scan.with_deleted
        if may_join and snapshot.meter is None:
            share = _share(scan) if share is None else share
            is_held = is_streamed and not all(has_width(f.type) for f in scan.projection.arrow)
            tasks = join_tasks(snapshot, scan.tasks, share, is_held=is_held)
        return cls(scan, tasks)

    @property
    def snapshot(self) -> Snapshot:
        """Return the version of the table."""
        return self.scan.snapshot

    @property
    def projection(self) -> Projection:
        """Return the columns that are shown."""
        return self.scan.projection

    @property
    def rows(self) -> int:
        """Return how many rows come out."""
        return self.scan.rows

    @property
    def is_remote(self) -> bool:
        """Return whether the store is remote: a read waits for its answers."""
        return self.scan.is_remote

    @property
    def pool_spec(self) -> PoolSpec:
        """Return the threads that read units, from the opening of their files on."""
        return self.snapshot.pool_spec

    @property
    def is_slight(self) -> bool:
        """Tell whether the fragments are so small that finding them takes longer than decoding."""
        stored = sum(task.rows * bytes_per_row(task.fragment) for task in self.tasks)
        return stored <= len(self.tasks) * SLIGHT_BYTES

    def map_in_order(
        self, work: Callable[[T], R], items: Iterable[T], cost: Callable[[T], int], budget: int
    ) -> Generator[R, None, None]:
        """Yield what the work gives for each item, worked on ahead where that helps.

        It does not where nearly all the work is Python's, of which threads do one thing at a time.
        """
        if self.is_slight and not self.is_remote:
            return (work(item) for item in items)
        return map_in_order(work, items, cost, budget, self.pool_spec)

    def stream_in_order(
        self, work: Callable[[T], R], items: Iterable[T], cost: Callable[[T], int], budget: int
    ) -> Generator[R, None, None]:
        """Yield as `map_in_order` does what becomes batches and is soon given back.

        Where no request is waited for, each processor has one item under way: more would only take memory.
        """

        def work_streaming(item: T) -> R:
            with Streaming():
                return work(item)

        if self.is_remote:
            return self.map_in_order(work_streaming, items, cost, budget)

        def share(item: T) -> int:
            size_bytes = cost(item)
            return size_bytes if size_bytes > MAPPED_UNIT_BYTES else min(size_bytes, UNIT_BYTES)

        budget = min(budget, processors() * UNIT_BYTES)
        return self.map_in_order(work_streaming, items, share, budget)

    def reader_of(self, task: int) -> FragmentReader | RunReader:
        """Return the reader of the fragment, or the run, of a task."""
        fragment = self.tasks[task].fragment
        if isinstance(fragment, FragmentRun):
            return RunReader(self.snapshot, fragment)
        return FragmentReader(self.snapshot, fragment, self.scan.with_deleted)

    def parts_of(self, unit: Unit) -> list[int]:
        """Return how many rows of a unit each fragment has, in order."""
        fragment = self.tasks[unit.task].fragment
        if not isinstance(fragment, FragmentRun):
            return [unit.rows]
        return fragment.cut(unit.start, unit.end)

    def place(self, task: int, live: LiveRows, physical: Int64Array) -> Place:
        """Return where rows of a task lie."""
        fragment = self.tasks[task].fragment
        dead = None
        if self.scan.with_deleted and not isinstance(fragment, FragmentRun):
            dead = self.snapshot.deleted(fragment)
        return Place(self.snapshot, fragment, live, physical, dead)


def read_table(scan: Scan) -> pa.Table:
    """Return all rows, each column chunked as it was decoded."""
    schema = scan.projection.arrow
    if not scan.projection.columns:
        return pa.Table.from_batches([empty_batch(schema, scan.rows)])
    reading = Reading.of(scan)
    units, jobs = _plan_table(reading)
    read: list[list[Chunks]] = [[] for _ in units]
    run = partial(_run, reading, units)
    stays_here = len(jobs) == 1 or (reading.is_slight and not scan.is_remote)
    found = map(run, jobs) if stays_here else map_all(run, jobs, reading.pool_spec)
    for job, results in zip(jobs, found, strict=True):
        for number, chunks in zip(job.units, results, strict=True):
            read[number] += chunks
    columns: list[Chunks] = [[] for _ in scan.projection.columns]
    for unit, mine in zip(units, read, strict=True):
        shown = _show(reading, unit, mine)
        for column, chunks in zip(columns, shown, strict=True):
            column.extend(chunks)
    pairs = zip(columns, schema, strict=True)
    return pa.Table.from_arrays([pa.chunked_array(c, f.type) for c, f in pairs], schema=schema)


def read_batches(
    scan: Scan,
    batch_rows: int,
    read_ahead_bytes: int = READ_AHEAD_BYTES,
    *,
    may_cut: bool = False,
    by_fragment: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows, task by task, in batches of ``batch_rows``, fewer at the end of a task.

    Unless they go ``by_fragment``, those of neighbouring small fragments are read, and come, as of one task.
    If batches ``may_cut``, those whose rows turn out to be wide have fewer, too.
    """
    schema, reading = scan.projection.arrow, Reading.of(scan, is_streamed=True)
    sizer = BatchSizer(schema, _share(scan), is_remote=scan.is_remote)
    prepared = _PreparedTask(reading, scan.projection.read.fields)

    def work(planned: tuple[Unit, int]) -> tuple[Unit, list[Chunks]]:
        unit, _ = planned
        read = prepared.read(unit)
        sizer.learn(reading.tasks[unit.task].fragment, read, unit.rows)
        return unit, _show(reading, unit, read)

    units = sizer.units(reading.tasks, batch_rows, may_cut=may_cut)
    cost = itemgetter(1)
    with closing(reading.stream_in_order(work, units, cost, read_ahead_bytes)) as results:
        for unit, columns in results:
            parts = reading.parts_of(unit) if by_fragment else [unit.rows]
            yield from cut_batches(columns, parts, batch_rows, schema)
            del columns  # not held while the next unit is waited for


@dataclass(frozen=True, slots=True)
class _Job:
    """A unit of reading for one thread: some fields of the units with these numbers."""

    units: range
    fields: Sequence[Field]


def _plan_table(reading: Reading) -> tuple[list[Unit], list[_Job]]:
    """Return the units of a scan, and who reads them.  For one that is small there is no more to plan."""
    least = row_bytes(reading.projection.arrow)
    if len(reading.tasks) == 1 and not reading.is_remote:
        (task,) = reading.tasks
        if task.rows * max(bytes_per_row(task.fragment), least) <= SMALL_JOB_BYTES:
            job = _Job(range(1), reading.projection.read.fields)
            return [Unit(0, task.start, task.end)], [job]
    units = _table_units(reading, least)
    return units, list(_jobs(reading, units, least))


def _table_units(reading: Reading, least: int) -> list[Unit]:
    """Return the units of a scan whose columns are read one by one; a row has ``least`` bytes."""
    fields = len(reading.projection.read.fields)
    columns = 1 if reading.is_remote else min(max(fields, 1), MOST_GROUPS)
    units = plan_units(
        reading.tasks,
        row_bytes=least // columns,
        widest=max([row_bytes(pa.schema([each])) for each in reading.projection.arrow], default=0),
        multiple_of=WHOLE_CHUNKS,
        share=_share(reading.scan) / columns,
        least_units=-(-_useful_units(reading) // columns),
    )
    return list(units)


def _jobs(reading: Reading, units: Sequence[Unit], least: int) -> Iterator[_Job]:
    """Yield the jobs of a scan: many small units together, a large one column by column.

    Units of a remote store go alone, however small: each waits for its own fragment.  Their columns go in lockstep, so
    that the requests are sent, and merged, together.
    """
    if reading.is_remote:
        yield from (
            _Job(range(n, n + 1), reading.projection.read.fields) for n in range(len(units))
        )
        return
    fields = reading.projection.read.fields
    first, size = 0, 0
    for number, unit in enumerate(units):
        cost = unit.rows * max(bytes_per_row(reading.tasks[unit.task].fragment), least)
        if first < number and (size + cost > SMALL_JOB_BYTES or number - first >= SMALL_JOB_UNITS):
            yield _Job(range(first, number), fields)
            first, size = number, 0
        size += cost
        if cost > SMALL_JOB_BYTES:
            groups = _column_groups(fields, cost)
            yield from (_Job(range(number, number + 1), group) for group in groups)
            first, size = number + 1, 0
    if first < len(units):
        yield _Job(range(first, len(units)), fields)


def _run(reading: Reading, units: Sequence[Unit], job: _Job) -> list[list[Chunks]]:
    prepared = _PreparedTask(reading, job.fields)
    return [prepared.read(units[number]) for number in job.units]


def _column_groups(fields: Sequence[Field], unit_bytes: int) -> list[Sequence[Field]]:
    """Return the fields of a unit that one thread reads at a time: each alone, or some together where they are small."""
    if not fields:
        return [fields]
    groups = min(len(fields), MOST_GROUPS, max(unit_bytes // JOB_BYTES, 2 * processors()))
    width = -(-len(fields) // groups)
    return [fields[first : first + width] for first in range(0, len(fields), width)]


def _share(scan: Scan) -> float:
    """Return about how much of the data files is read, if all columns were alike."""
    return len(scan.projection.read.fields) / max(len(scan.snapshot.manifest.schema.fields), 1)


def _useful_units(reading: Reading) -> int:
    """Return how many units keep all threads at work; where a request is a round trip, fewer is more."""
    return 1 if reading.is_remote else processors()


class _PreparedTask:
    """The fields of one task, ready to be read: units that follow one another are mostly of one."""

    def __init__(self, reading: Reading, fields: Sequence[Field]) -> None:
        self._reading = reading
        self._fields = fields
        self._found: tuple[int, LiveRows, PreparedRead | PreparedRun] | None = None

    def read(self, unit: Unit) -> list[Chunks]:
        """Return the live rows of a unit, for each field; many threads may ask."""
        if not self._fields:
            return []
        found = self._found
        if found is None or found[0] != unit.task:
            found = unit.task, *self._reading.reader_of(unit.task).find(self._fields)
            self._found = found
        _, live, columns = found
        return read_live(columns, live.between(unit.start, unit.end))


def _show(reading: Reading, unit: Unit, read: Sequence[Chunks]) -> list[Chunks]:
    if not reading.projection.metas:
        return show_columns(reading.projection, read, None)
    live = reading.reader_of(unit.task).live_rows()
    physical = live.between(unit.start, unit.end).physical()
    return show_columns(reading.projection, read, reading.place(unit.task, live, physical))
