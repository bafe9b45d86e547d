"""Writing rows into a table: plan, tasks, one commit.

The *plan* is made once, on the driver: it reads the table's newest manifest, checks the schema, and
pins the version that the commit will be judged against.  The *task* inside it pickles; each
executor (or this process) runs it over its share of the batches and returns fragments, which
pickle too.  The *commit* takes the fragments of all tasks and makes them one version.

Nothing that a task wrote is deleted when something fails.  Files that no manifest names do no harm,
and a commit that seems to have failed may have landed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import count
from operator import is_

import pyarrow as pa

from pennon.core.units import FieldId, FragmentId
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    InvalidSchemaError,
    UnsupportedError,
)
from pennon.file.container.losses import Losses
from pennon.file.container.write_limits import PageLimits, RowGroups
from pennon.file.open import create_data_file
from pennon.io.store import Store
from pennon.ops.blob_files import BlobFiles, BlobRule
from pennon.ops.commit import commit_transaction
from pennon.ops.dictionaries import known_dictionaries
from pennon.ops.file_limits import FileLimits as FileLimits
from pennon.ops.fit import fit_batch, fit_schema
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.blob import upgraded
from pennon.schema.blob_arrays import written_schema
from pennon.schema.check import check_writable, default_version
from pennon.schema.field import Field, Schema
from pennon.schema.version import V0_1, WRITABLE, Ability, FileVersion, check_is_written
from pennon.table.blob_table import check_no_blob_table
from pennon.table.commit.options import DEFAULT_POLICY, CommitPolicy
from pennon.table.fragment import BasePath, DataFileRef, Fragment, WrittenColumns
from pennon.table.manifest import Manifest
from pennon.table.operations import Append, Overwrite
from pennon.table.storage_version import storage_version
from pennon.table.transaction import Transaction
from pennon.table.versions import read_newest_if_any

UNASSIGNED_FRAGMENT = FragmentId(0)


class WriteMode(Enum):
    """The treatment of existing rows: create, append or overwrite."""

    CREATE = "create"
    APPEND = "append"
    OVERWRITE = "overwrite"

    @classmethod
    def parse(cls, name: str | None) -> WriteMode:
        """Return the mode of that name, ``create`` for None; raises ArgumentError that lists the modes."""
        if name is None:
            return cls.CREATE
        try:
            return cls(str(name).lower())
        except ValueError:
            known = ", ".join(repr(mode.value) for mode in cls)
            message = f"there is no write mode {name!r}; the modes are {known}"
            raise ArgumentError(message) from None


@dataclass(frozen=True, slots=True)
class WriteTask:
    """A task that writes data files; it pickles, and is independent of commits.

    ``schema`` has the table's field ids, and is what the data has (an append may lack columns).
    """

    store: Store
    schema: Schema
    version: FileVersion
    limits: FileLimits = field(default_factory=FileLimits)
    dictionaries: Mapping[FieldId, pa.Array] = field(default_factory=dict)
    """Of a table of version 0.1 that is appended to."""
    bases: tuple[int | None, ...] = (None,)
    """The base paths that files go to, one after the other; None is the table's own folder."""
    blobs: BlobRule = field(default_factory=BlobRule)


@dataclass(frozen=True, slots=True)
class WritePlan:
    """One write: its task, and what its commit will be.

    ``table_schema`` is the schema of the version that will be made.  ``base`` is the version that
    the plan was made against, None if there was no table.  ``planned_ns`` is when it was made: the
    files of a job that took long are looked for before they are committed.  ``config`` and
    ``base_paths`` are those of a new table.
    """

    task: WriteTask
    mode: WriteMode
    table_schema: Schema
    base: Manifest | None
    planned_ns: int = field(default_factory=time.time_ns)
    config: Mapping[str, str] = field(default_factory=dict)
    base_paths: tuple[BasePath, ...] = ()


def plan_write(
    store: Store,
    arrow: pa.Schema,
    mode: WriteMode,
    *,
    base: Manifest | None = None,
    version: FileVersion | None = None,
    limits: FileLimits | None = None,
    blobs: BlobRule | None = None,
) -> WritePlan:
    """Plan a write of data with the schema ``arrow``.

    ``base`` is the version to judge the commit against; None means the newest one, read now.

    Raises AlreadyExistsError (create), SchemaMismatchError (append), UnsupportedError for a file
    version or a type that cannot be written.
    """
    if base is None:
        base = read_newest_if_any(store, is_likely_new=mode is WriteMode.CREATE)
    if mode is WriteMode.CREATE and base is not None:
        message = f"there is a table at {store.uri!r} already; append to it or overwrite it"
        raise AlreadyExistsError(message)
    if mode is WriteMode.APPEND and base is not None:
        check_no_blob_table(base)
    data = schema_from_arrow(arrow)
    file_version = version_of_table(base, mode, version) or default_version(data)
    data = as_version_holds(data, file_version)
    if mode is WriteMode.APPEND and base is not None:
        table_schema, file_schema = base.schema, fit_schema(base.schema, data)
    else:
        table_schema, file_schema = data, data
    check_writable(file_schema, file_version)
    limits = limits_for(file_version, limits or FileLimits())
    dictionaries: Mapping[FieldId, pa.Array] = {}
    if mode is WriteMode.APPEND and base is not None and file_version == V0_1:
        dictionaries = known_dictionaries(store, base)
    bases = () if base is None else base.base_paths
    blobs = replace(blobs or BlobRule(), bases=bases)
    task = WriteTask(store, file_schema, file_version, limits, dictionaries, blobs=blobs)
    return WritePlan(task, mode, table_schema, base)


def as_version_holds(schema: Schema, version: FileVersion, next_id: int | None = None) -> Schema:
    """Return a schema with blobs of version 2 for files that hold no others.

    New fields get ids from ``next_id`` on; without it, all fields get ids anew, depth first.
    """
    if not version.holds(Ability.BLOBS_V2):
        return schema
    fields = tuple(map(upgraded, schema.fields))
    if all(map(is_, fields, schema.fields)):
        return schema
    ids = map(FieldId, count(next_id or 0))
    number = Field.renumbered if next_id is None else Field.numbered
    return Schema(tuple(number(field, ids) for field in fields), schema.metadata)


def limits_for(version: FileVersion, limits: FileLimits) -> FileLimits:
    """Return the limits as files of a version can keep them.

    Raises ArgumentError for zone maps, which only version 2.0 has.
    """
    if limits.rows_per_zone is not None and not version.holds(Ability.ZONE_MAPS):
        message = f"rows_per_zone is for files of version 2.0, and these are of version {version}"
        raise ArgumentError(message)
    return limits.of_whole_groups() if version == V0_1 else limits


def version_of_table(
    base: Manifest | None, mode: WriteMode, asked: FileVersion | None
) -> FileVersion | None:
    """Return the version of new data files; None if the table is new and the caller names none.

    What the caller asks for goes first, then what the table's files are.  An overwrite replaces all
    rows, so where Pennon does not write the table's version it takes the newest that it writes; an
    append does not, for then the table would get files of two versions unasked.

    Raises UnsupportedError for a version that is not written, ArgumentError for a mixture with 0.1.

    Source: ledger F-111, F-112.
    """
    current = storage_version(base) if base is not None else None
    if asked is not None:
        check_is_written(asked)
        if (
            mode is WriteMode.APPEND
            and current is not None
            and (current == V0_1) != (asked == V0_1)
        ):
            message = f"files of version {asked} cannot be added to a table of version {current}"
            raise ArgumentError(message)
        return asked
    if current is None or current in WRITABLE:
        return current
    if mode is not WriteMode.APPEND:
        return WRITABLE[-1]
    message = (
        f"this table has files of version {current}, and Pennon writes none newer than "
        f"{WRITABLE[-1]}"
    )
    if current > WRITABLE[-1]:
        message += f"; to add files of that version, ask for data_storage_version='{WRITABLE[-1]}'"
    raise UnsupportedError(message)


@dataclass(frozen=True, slots=True)
class Watcher:
    """Is told when a fragment is begun (by its file's name) and when it is complete."""

    begin: Callable[[str], None] = lambda _: None
    complete: Callable[[Fragment], None] = lambda _: None


def write_fragments(
    task: WriteTask, batches: Iterable[pa.RecordBatch], watcher: Watcher | None = None
) -> list[Fragment]:
    """Write the batches as data files, and return a fragment for each, without an id yet.

    No rows, no fragments.  Memory holds a batch and the pages that are being filled.
    Raises SchemaMismatchError for a NULL in a column that is never NULL.  Warns (DataLossWarning) of
    what the file version does not hold.
    """
    watcher = watcher or Watcher()
    target = written_schema(task.schema)
    if not task.schema.fields:
        return _write_nothing(batches)
    pieces = _Pieces(batches, target)
    fragments: list[Fragment] = []
    groups = RowGroups(task.limits.max_rows_per_group, fixed=task.dictionaries)
    losses = Losses()
    while pieces.has_rows():
        major, minor = task.version.to_numbers()
        base_id = task.bases[len(fragments) % len(task.bases)]
        file = DataFileRef(new_file_name(), (), (), major, minor, base_id=base_id)
        watcher.begin(file.path)
        fragments.append(_write_file(task, file, pieces, groups, losses))
        watcher.complete(fragments[-1])
    losses.warn()
    return fragments


def _write_nothing(batches: Iterable[pa.RecordBatch]) -> list[Fragment]:
    """Return no fragment for data without columns.

    Raises InvalidSchemaError if it has rows: no data file can tell how many they are.
    """
    if any(batch.num_rows for batch in batches):
        message = "the data has rows but no columns"
        raise InvalidSchemaError(message)
    return []


class _Pieces:
    """The rows still to be written, handed out in slices of batches."""

    def __init__(self, batches: Iterable[pa.RecordBatch], target: pa.Schema) -> None:
        self._batches: Iterator[pa.RecordBatch] = iter(batches)
        self._target = target
        self._current: pa.RecordBatch | None = None

    def has_rows(self) -> bool:
        """Tell whether a row is left; reads on past empty batches."""
        while self._current is None or not self._current.num_rows:
            batch = next(self._batches, None)
            if batch is None:
                self._current = None
                return False
            self._current = fit_batch(batch, self._target)
        return True

    def next(self, limits: FileLimits, rows: int, size_bytes: int) -> pa.RecordBatch:
        """Return the rows that a file of so many rows and bytes still has room for."""
        if not self.has_rows() or self._current is None:
            message = "no rows are left"
            raise ArgumentError(message)
        current = self._current
        row_bytes = max(current.nbytes / current.num_rows, 1 / 8)
        taken = limits.room(rows, size_bytes, row_bytes)
        self._current = current.slice(taken)
        return current.slice(0, taken)


def _write_file(
    task: WriteTask, file: DataFileRef, pieces: _Pieces, groups: RowGroups, losses: Losses
) -> Fragment:
    """Write one data file, until it is full or no rows are left."""
    limits = task.limits
    rows = size_bytes = 0
    sink = task.store.open_writer(file.store_path)
    with (
        create_data_file(
            sink, task.schema, task.version, limits=_page_limits(task), groups=groups
        ) as writer,
        BlobFiles.beside(task.store, file, task.schema, task.blobs) as blobs,
    ):
        while not limits.is_full(rows, size_bytes) and pieces.has_rows():
            piece = blobs.prepare(pieces.next(limits, rows, size_bytes))
            writer.write(piece)
            rows += piece.num_rows
            size_bytes += piece.nbytes
        blobs.finish()
        with losses.gathered():
            written = writer.finish()
    ids = tuple(map(FieldId, written.field_ids))
    whole = replace(
        file,
        field_ids=ids,
        column_indices=written.column_indices,
        size_bytes=written.size_bytes,
        written=WrittenColumns(task.schema, ids, written.column_indices),
    )
    return Fragment(UNASSIGNED_FRAGMENT, (whole,), written.num_rows)


def _page_limits(task: WriteTask) -> PageLimits:
    """Return the limits of pages; the cache is given for the file, and shared by its columns."""
    limits = PageLimits(rows_per_zone=task.limits.rows_per_zone)
    if task.limits.data_cache_bytes is not None:
        columns = max(len(task.schema.fields), 1)
        limits = replace(limits, cache_bytes=max(task.limits.data_cache_bytes // columns, 1))
    if task.limits.max_page_bytes is not None:
        limits = replace(limits, max_page_bytes=task.limits.max_page_bytes)
    return limits


def new_file_name() -> str:
    """Return a unique name: 24 binary digits, 26 hexadecimal ones.

    Object stores spread their load by the first characters of a name; binary digits there spread
    it finely.  Source: ledger (measured on pylance 14.0.2).
    """
    head, tail = secrets.randbits(24), secrets.token_hex(13)
    return f"{head:024b}{tail}.lance"


def transaction_of(
    plan: WritePlan, fragments: Iterable[Fragment], properties: Mapping[str, str] | None = None
) -> Transaction:
    """Return what the commit of a plan will be, given the fragments of all its tasks."""
    new = tuple(fragments)
    if plan.mode is WriteMode.APPEND and plan.base is not None:
        return Transaction(plan.base.version, Append(new), properties=properties or {})
    read_version = plan.base.version if plan.base is not None else 0
    operation = Overwrite(new, plan.table_schema)
    if plan.base is None:
        operation = replace(operation, config_upserts=plan.config, base_paths=plan.base_paths)
    return Transaction(read_version, operation, properties=properties or {})


def commit_write(
    plan: WritePlan,
    fragments: Iterable[Fragment],
    properties: Mapping[str, str] | None = None,
    policy: CommitPolicy = DEFAULT_POLICY,
) -> Manifest:
    """Make the fragments of all tasks one new version, and return its manifest.

    An append of no rows makes a version, too.
    Raises what `pennon.table.commit.loop.commit` raises.
    """
    return commit_transaction(
        plan.task.store,
        transaction_of(plan, fragments, properties),
        policy,
        base=plan.base,
        planned_ns=plan.planned_ns,
        file_version=plan.task.version,
    )
