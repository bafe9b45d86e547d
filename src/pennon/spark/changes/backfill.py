"""New columns for a table that is there: computed by Spark or by a function, or brought by a DataFrame.

::

    expressions     each task has the rows of a fragment, in order: nothing goes through a shuffle
    function        each task reads a fragment itself: nothing goes through the JVM
    embedding       the same, with a model
    DataFrame       joined by a key, or its row ids; rows are shuffled by fragment and sorted
    all             one more file for each fragment, written on the executors; one commit

A fragment that is written stays written: after a conflict with another writer, and, where there is a
folder for checkpoints, after anything else, only the others are computed (`pennon.ops.columns.finished`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import functions as sf

from pennon.core.units import FragmentId
from pennon.encoding.exact_batches import exact_batches
from pennon.errors import ArgumentError, FormatError, InvalidSchemaError, MatchError
from pennon.io import open_store
from pennon.ops.columns.add import AddPlan, commit_add, plan_columns
from pennon.ops.columns.addressed import AddressedTask, completed, plan_addressed
from pennon.ops.columns.column_sources import FunctionColumns, as_announced, as_batch
from pennon.ops.columns.finished import Notes
from pennon.ops.columns.names import find_column
from pennon.ops.columns.task import ColumnsTask
from pennon.ops.embed.embed import EmbedRequest, plan_embed
from pennon.scan.projection import plan_scan_projection
from pennon.scan.read.execute import Scan, read_batches
from pennon.scan.read.tasks import plan_tasks
from pennon.schema.arrow import schema_to_arrow
from pennon.spark.arrow_convert import convert_batch
from pennon.spark.changes.row_changes import analysed
from pennon.spark.conflicts import are_addresses, with_conflict_retries
from pennon.spark.frames.scan import ADDRESS, address_frame, fragment_frame
from pennon.spark.history import HistoryEntry
from pennon.spark.names import find_name, quoted
from pennon.spark.run_tasks import run_on_rows, run_tasks
from pennon.spark.session import is_case_sensitive
from pennon.spark.source.conditions import (
    Condition,
    as_column,
    columns_named,
    look_aside,
    system_columns_named,
)
from pennon.spark.task_errors import typed_errors
from pennon.spark.types import ROW_ADDRESS, ROW_ID, SYSTEM_COLUMNS, lance_schema
from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import (
    parse_fragment_bytes,
    parse_fragments,
    serialize_fragment_bytes,
    serialize_fragments,
)
from pennon.table.storage_version import storage_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot

Function: TypeAlias = Callable[[pa.RecordBatch], Any]
"""Makes a batch of new columns (Arrow's or pandas') of a batch of the table's rows."""

FUNCTION_ROWS: Final = 1024
"""Rows of the batches that a function gets, unless the caller says otherwise."""
_ADDRESSES: Final = re.compile(r"@[0-9a-f]+")
"""Of the JVM's objects, in the text of a Column with a UDF: others each time."""
_KEY: Final = "__pennon_key"


@dataclass(frozen=True, slots=True)
class Backfill:
    """The source of new columns: expressions by name, a function, an embedding, or a DataFrame and what it is joined on.

    ``checkpoint`` is a folder that the driver and all executors see.  ``read_columns``, ``output_schema``
    and ``batch_rows`` are a function's.
    """

    columns: Mapping[str, Condition] | Function | EmbedRequest | DataFrame
    on: tuple[str, ...] = ()
    alias: str | None = None
    checkpoint: str | None = None
    read_columns: tuple[str, ...] | None = None
    output_schema: pa.Schema | None = None
    batch_rows: int | None = None
    fixed_size_lists: Mapping[str, int] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Backfilled:
    """The result: the new version, and how many fragments were written now, and before."""

    version: int
    columns: int
    written: int
    reused: int


@dataclass(frozen=True, slots=True)
class WriteRows:
    """Writes the new columns of fragments whose rows a partition has; it pickles."""

    to_bytes = staticmethod(serialize_fragments)
    from_bytes = staticmethod(parse_fragments)

    task: AddressedTask
    notes: Notes

    def run(self, batches: Iterator[pa.RecordBatch]) -> list[Fragment]:
        """Return the fragments with their new files; each is noted."""
        schema = pa.schema([pa.field(ADDRESS, pa.int64()), *self.task.values])
        old = {each.id: each for each in self.task.snapshot.manifest.fragments}
        written = []
        for new in self.task.run(convert_batch(batch, schema) for batch in batches):
            self.notes.note(old[new.id], new)
            written.append(new)
        return written


@dataclass(frozen=True, slots=True)
class WriteFragment:
    """Writes the new columns of the fragment of a number; it pickles."""

    to_bytes = staticmethod(serialize_fragment_bytes)
    from_bytes = staticmethod(parse_fragment_bytes)

    task: ColumnsTask
    notes: Notes

    def run(self, number: int) -> Fragment:
        """Return the fragment with its new file; it is noted."""
        new = self.task.run(number)
        self.notes.note(self.task.snapshot.manifest.fragments[number], new)
        return new


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Calls a function, and holds it to the schema that it announced; it pickles as Spark pickles."""

    function: Function
    schema: pa.Schema

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the new columns of a batch."""
        return as_announced(self.function(batch), self.schema)


@dataclass(frozen=True, slots=True)
class _Work:
    """The computation of the columns of a version: ``write`` does it for those fragments that a version has."""

    plan: AddPlan
    notes: Notes
    write: Callable[[Snapshot], list[Fragment]]
    finish: Callable[[list[Fragment]], list[Fragment]]


def backfill(spark: SparkSession, snapshot: Snapshot, wanted: Backfill) -> Backfilled:
    """Add columns as one version.

    Raises ArgumentError and its kinds for columns that make no sense, MatchError where a row gets two
    values, RetryableConflict if others changed the table again and again, and what Spark raises where
    a task fails.
    """
    started = time.monotonic()
    known: dict[str, Fragment] = {}
    counts = [0, 0]

    def execute(now: Snapshot) -> Backfilled:
        work = _planned(spark, now, wanted)
        old = now.manifest.fragments
        done = work.notes.find(now)
        if not known:
            counts[1] = len(done)
        done |= {f.id: known[name] for f in old if (name := work.notes.name(f)) in known}
        rest = [f for f in old if f.id not in done]
        if rest:
            written = work.write(now.at(replace(now.manifest, fragments=tuple(rest))))
            by_id = {each.id: each for each in rest}
            known.update({work.notes.name(by_id[each.id]): each for each in written})
            counts[0] += len(written)
            done |= {each.id: each for each in written}
        fragments = work.finish(list(done.values()))
        entry = _history_entry(work.plan, fragments, started)
        version = commit_add(work.plan, fragments, entry.properties()).version
        work.notes.forget(old)
        new = len(work.plan.schema.fields) - len(now.manifest.schema.fields)
        return Backfilled(version, new, *counts)

    return with_conflict_retries(spark, execute, snapshot, wanted.on)


def _planned(spark: SparkSession, snapshot: Snapshot, wanted: Backfill) -> _Work:
    columns = wanted.columns
    if isinstance(columns, Mapping):
        return _of_expressions(spark, snapshot, wanted, columns)
    if isinstance(columns, EmbedRequest):
        plan = plan_embed(snapshot, columns)
        said = repr((columns.model.title, columns.is_normalized, columns.batch_rows))
        return _of_task(spark, snapshot, wanted, plan.add, plan.task, said)
    if callable(columns):
        return _of_function(spark, snapshot, wanted, columns)
    return _of_frame(spark, snapshot, wanted, columns)


def _history_entry(plan: AddPlan, fragments: Sequence[Fragment], started: float) -> HistoryEntry:
    before = {file.path for each in plan.fragments for file in each.files}
    new = [f for each in fragments for f in each.files if f.path not in before]
    names = plan.schema.names[len(plan.snapshot.manifest.schema.names) :]
    metrics = {
        "numAddedColumns": len(names),
        "numAddedFiles": len(new),
        "numAddedBytes": sum(file.size_bytes or 0 for file in new),
        "executionTimeMs": round(1000 * (time.monotonic() - started)),
    }
    return HistoryEntry("ADD COLUMNS", {"columns": ", ".join(names)}, metrics)


def _notes(wanted: Backfill, task: ColumnsTask | AddressedTask, by: str) -> Notes:
    """Return what fragments are noted under; the folder may be one of another store."""
    store = None
    if wanted.checkpoint is not None:
        store = open_store(wanted.checkpoint, dict(wanted.storage_options) or None)
    return Notes(store, task.files, by)


# --- what columns are made of -----------------------------------------------------------------------


def _of_expressions(
    spark: SparkSession, snapshot: Snapshot, wanted: Backfill, values: Mapping[str, Condition]
) -> _Work:
    names = list(schema_to_arrow(snapshot.manifest.schema).names)
    system = system_columns_named(values.values(), names, wanted.alias)
    few = [*columns_named(values.values(), names, wanted.alias), *system]
    every = [*names, *system]
    looks_aside = look_aside(values.values())

    def rows_of(version: Snapshot) -> DataFrame:
        def build(columns: Sequence[str]) -> DataFrame:
            rows = fragment_frame(spark, version, columns)
            rows = rows if wanted.alias is None else rows.alias(wanted.alias)
            made = [as_column(value).alias(name) for name, value in values.items()]
            return rows.select(sf.col(ADDRESS), *made)

        return analysed(build, few, every)

    whole = rows_of(snapshot)
    plan, task = plan_addressed(snapshot, _new_schema(snapshot, whole, wanted), is_whole=True)
    said = [f"{name}={_ADDRESSES.sub('', str(value))}" for name, value in values.items()]
    if looks_aside:
        said.append(f"of version {snapshot.manifest.version}")
    notes = _notes(wanted, task, repr(said))

    def write(rest: Snapshot) -> list[Fragment]:
        if not looks_aside:
            return _written(rows_of(rest), task, notes)
        ids = [each.id for each in rest.manifest.fragments]
        is_left = _owner().isin(ids)
        is_all = len(ids) == len(snapshot.manifest.fragments)
        return _written(_placed(whole if is_all else whole.where(is_left)), task, notes)

    return _Work(plan, notes, write, lambda done: completed(task, done))


def _of_frame(spark: SparkSession, snapshot: Snapshot, wanted: Backfill, frame: DataFrame) -> _Work:
    keys = wanted.on
    if not keys:
        message = (
            f"a DataFrame is joined on columns: on='key', on=['a', 'b'], or on={ROW_ID!r} or {ROW_ADDRESS!r} "
            "if it has that"
        )
        raise ArgumentError(message)
    cases, given = is_case_sensitive(spark), []
    for key in keys:
        if key not in SYSTEM_COLUMNS:
            find_column(snapshot.manifest.schema, key)
        name = find_name(key, frame.columns, case_sensitive=cases)
        if name is None:
            message = f"the DataFrame has no column {key!r}; it has {', '.join(frame.columns)}"
            raise ArgumentError(message)
        given.append(name)
    new = [name for name in frame.columns if name not in given]
    if not new:
        message = f"the DataFrame has no column beside {', '.join(keys)}"
        raise ArgumentError(message)
    shown = frame.select(*(sf.col(quoted(name)) for name in new))
    plan, task = plan_addressed(snapshot, _new_schema(snapshot, shown, wanted), is_whole=False)
    notes = _notes(wanted, task, repr((keys, shown.schema.simpleString())))
    is_address = len(keys) == 1 and are_addresses(snapshot, keys)
    values = [sf.col(quoted(name)) for name in new]
    by_key = [sf.col(quoted(name)) for name in given]

    def write(rest: Snapshot) -> list[Fragment]:
        if is_address:
            rows = frame.select(by_key[0].cast("long").alias(ADDRESS), *values)
            left = {each.id for each in rest.manifest.fragments}
            done = [f.id for f in snapshot.manifest.fragments if f.id not in left]
            return _written(
                _placed(rows.where(~_owner().isin(done)) if done else rows), task, notes
            )
        target = address_frame(spark, rest, keys)
        mine = [sf.col(quoted(key)).alias(f"{_KEY}_table_{n}") for n, key in enumerate(keys)]
        theirs = [key.alias(f"{_KEY}_{n}") for n, key in enumerate(by_key)]
        same = [sf.col(f"{_KEY}_table_{n}") == sf.col(f"{_KEY}_{n}") for n in range(len(keys))]
        joined = target.select(ADDRESS, *mine).join(frame.select(*theirs, *values), same, "inner")
        return _written(_placed(joined.select(sf.col(ADDRESS), *values)), task, notes)

    return _Work(plan, notes, write, lambda done: completed(task, done))


def _of_function(
    spark: SparkSession, snapshot: Snapshot, wanted: Backfill, function: Function
) -> _Work:
    schema = snapshot.manifest.schema
    for name in wanted.read_columns or ():
        find_column(schema, name)
    names = None if wanted.read_columns is None else list(wanted.read_columns)
    inputs = plan_scan_projection(schema, names)
    announced = wanted.output_schema or getattr(function, "output_schema", None)
    if announced is None:
        first = next(iter(_first_rows(snapshot, inputs)), None)
        if first is None:
            message = "there is no row to try the function on; say outputSchema"
            raise ArgumentError(message)
        announced = as_batch(function(first)).schema
    maker = FunctionColumns(CallFunction(function, announced), inputs)
    rows = wanted.batch_rows or FUNCTION_ROWS
    plan = plan_columns(snapshot, announced.remove_metadata(), maker, rows)
    task = plan.task
    if task is None:
        message = "the function makes no columns"
        raise ArgumentError(message)
    return _of_task(spark, snapshot, wanted, plan, task, repr((inputs.names, rows)))


def _of_task(
    spark: SparkSession,
    snapshot: Snapshot,
    wanted: Backfill,
    plan: AddPlan,
    task: ColumnsTask,
    said: str,
) -> _Work:
    """Return the work of a task that reads fragments itself; ``said``: what its results depend on, beside its columns."""
    notes = _notes(wanted, task, said)

    def write(rest: Snapshot) -> list[Fragment]:
        mine = WriteFragment(replace(task, snapshot=rest), notes)
        return run_tasks(spark, mine, mine.task.count)

    return _Work(plan, notes, write, lambda done: _in_order(snapshot, done))


def _first_rows(snapshot: Snapshot, inputs: Any) -> Iterator[pa.RecordBatch]:
    scan = Scan(snapshot, inputs, tuple(plan_tasks(snapshot, limit=1)))
    return exact_batches(read_batches(scan, 1))


def _in_order(snapshot: Snapshot, done: Sequence[Fragment]) -> list[Fragment]:
    known: dict[FragmentId, Fragment] = {each.id: each for each in done}
    return [known[each.id] for each in snapshot.manifest.fragments]


def _new_schema(snapshot: Snapshot, rows: DataFrame, wanted: Backfill) -> pa.Schema:
    """Return the columns that are new, as files of the table's version have them."""
    fields = [each for each in rows.schema.fields if each.name != ADDRESS]
    known = {name.lower(): name for name in snapshot.manifest.schema.names}
    for each in fields:
        same = known.setdefault(each.name.lower(), each.name)
        if same != each.name:
            message = f"columns {same!r} and {each.name!r} differ by case alone, which Spark takes for one"
            raise InvalidSchemaError(message)
    version = storage_version(snapshot.manifest)
    return lance_schema(type(rows.schema)(fields), wanted.fixed_size_lists, version)


# --- rows on their way --------------------------------------------------------------------------------


def _owner() -> Any:
    return sf.shiftright(sf.col(ADDRESS), 32)


def _placed(rows: DataFrame) -> DataFrame:
    """Return rows with each fragment's in one partition, in order."""
    return rows.repartition(_owner()).sortWithinPartitions(sf.col(ADDRESS))


def _written(rows: DataFrame, task: AddressedTask, notes: Notes) -> list[Fragment]:
    with typed_errors(MatchError, ArgumentError, FormatError):
        written = run_on_rows(rows, WriteRows(task, notes))
    return [each for several in written for each in several]
