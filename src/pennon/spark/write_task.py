"""What one Spark task writes, and the one commit of what all of them wrote.

Plan, task and commit are those of `pennon.ops.write`; here is the Spark schema before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StructType

from pennon.errors import AlreadyExistsError, NotFoundError
from pennon.file.container.input_check import InputCheck
from pennon.io import open_store
from pennon.ops.write import (
    FileLimits,
    WriteMode,
    WritePlan,
    WriteTask,
    commit_write,
    plan_write,
    version_of_table,
    write_fragments,
)
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.version import DEFAULT_VERSION, FileVersion
from pennon.spark.arrow_convert import convert_batch
from pennon.spark.messages import parse_fragments, serialize_fragments
from pennon.spark.options import WriteOptions
from pennon.spark.types import append_schema, lance_schema
from pennon.table.manifest import Manifest
from pennon.table.versions import read_manifest


def plan_table_write(options: WriteOptions, schema: StructType, mode: WriteMode) -> WritePlan:
    """Pin the table's version and settle the schema of the rows (on the driver).

    Raises SchemaMismatchError where a DataFrame does not fit the table it is appended to,
    AlreadyExistsError for a create over a table, UnsupportedError for a type that the file version
    cannot hold.
    """
    store = open_store(options.uri, dict(options.storage_options) or None)
    try:
        base: Manifest | None = read_manifest(store)
    except NotFoundError:
        base = None
    version = version_of_table(base, mode, _asked_version(options)) or DEFAULT_VERSION
    if base is not None and mode is WriteMode.APPEND:
        rows = append_schema(schema_to_arrow(base.schema), schema)
    else:
        rows = lance_schema(schema, options.fixed_size_lists, version)
    return plan_write(store, rows, mode, base=base, version=version, limits=_limits(options))


def _asked_version(options: WriteOptions) -> FileVersion | None:
    name = options.data_storage_version
    return None if name is None else FileVersion.parse(name)


def _limits(options: WriteOptions) -> FileLimits:
    default = FileLimits()
    rows = options.max_rows_per_file or default.max_rows
    return FileLimits(rows, options.max_bytes_per_file or default.max_bytes)


@dataclass(frozen=True, slots=True)
class TableWrite:
    """The part of a write that travels to the executors."""

    task: WriteTask

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        """Write the rows of one task to new data files, and say which fragments they are.

        Nothing refers to the files until the commit: a task that dies, or runs twice, leaves
        orphans at most.
        """
        checked = InputCheck().checked(batches)
        rows = _converted(checked, schema_to_arrow(self.task.schema))
        return serialize_fragments(write_fragments(self.task, rows))


def _converted(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            yield convert_batch(batch, schema)


def commit_messages(plan: WritePlan, messages: Iterable[bytes]) -> int:
    """Make one version of what all tasks wrote, and return its number.

    An append of no rows to a table makes no version.  Two jobs that create the same table by
    appending both keep their rows: the later one appends.
    """
    fragments = [fragment for message in messages for fragment in parse_fragments(message)]
    is_append = plan.mode is WriteMode.APPEND
    if is_append and plan.base is not None and not fragments:
        return plan.base.version
    try:
        return commit_write(plan, fragments).version
    except AlreadyExistsError:
        if not is_append:
            raise
        return commit_write(_plan_late_append(plan), fragments).version


def _plan_late_append(plan: WritePlan) -> WritePlan:
    """Return the plan of an append to the table that another job created while this one wrote.

    Field ids are numbered depth first, so equal schemas have equal ids.  Raises AlreadyExistsError
    if the other table has another schema.
    """
    late = plan_write(
        plan.task.store,
        schema_to_arrow(plan.table_schema),
        WriteMode.APPEND,
        version=plan.task.version,
        limits=plan.task.limits,
    )
    if late.table_schema.fields != plan.table_schema.fields:
        message = f"another writer created a table of another schema at {late.task.store.uri!r}"
        raise AlreadyExistsError(message)
    return late
