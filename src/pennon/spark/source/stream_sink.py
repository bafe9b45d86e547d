"""``df.writeStream.format("lance")``: each batch of a stream is one version, made once.

Spark makes a writer for each batch, and runs a batch again if it does not know that it was committed.  The table knows:
the commit notes the query and the number of the batch (`pennon.table.transaction`).  Spark tells a Python sink the
number alone; the id of the query is a property of the tasks, so they hand it back with their fragments.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import StructType

from pennon.errors import ArgumentError, CommitError, LanceError, MatchError
from pennon.io import open_store
from pennon.ops.compact.levels import compact_level
from pennon.ops.write import WriteMode
from pennon.spark.pyspark_classes import check_release, ds
from pennon.spark.run_tasks import message_of
from pennon.spark.source.options import (
    STREAM_READ_KEYS,
    WriteOptions,
    check_not_of_stream,
    flag,
    known_options,
    parse_write_options,
    split,
)
from pennon.spark.source.replaced_rows import (
    AmongKeys,
    commit_replaced,
    delete_here,
    key_columns,
    keys_of,
    plan_replacement,
)
from pennon.spark.source.row_write import TablePlan, TableWrite, commit_fragments
from pennon.spark.source.write_task import plan_table_write
from pennon.spark.stream_query import QUERY
from pennon.table.fragment import Fragment
from pennon.table.transaction import AppVersion, apps_of


@dataclass(frozen=True)
class BatchWritten(ds.WriterCommitMessage):
    """The fragments that one task wrote, as bytes, and the id of the query; None if Spark did not say it."""

    answer: bytes
    query: str | None


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Options of ``writeStream.format("lance")``.

    ``app`` names the application in place of the query's id; ``keys`` are the columns that tell which rows of the table
    a new row replaces; ``compacts``: small fragments become larger ones as the table grows.
    """

    write: WriteOptions
    app: str | None
    keys: tuple[str, ...]
    checkpoint: str | None
    compacts: bool

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SinkOptions:
        """Raises ArgumentError for an unknown key, a value that makes no sense, or an option of batches."""
        given = known_options(options)
        check_not_of_stream(given, STREAM_READ_KEYS, "readStream")
        wrong = [key for key in ("replacewhere", "overwrite_by", "txnversion") if key in given]
        if wrong:
            message = (
                f"option {wrong[0]} is for writes of one batch; a stream numbers its batches, and mergeOn names the "
                "columns whose values say which rows are replaced"
            )
            raise ArgumentError(message)
        own = {k: v for k, v in options.items() if k.lower() not in ("txnappid", "mergeon")}
        keys = tuple(split(given.get("mergeon", "")))
        write = replace(parse_write_options(own), overwrite_by=keys)
        app, checkpoint = given.get("txnappid"), given.get("checkpointlocation")
        return cls(write, app, keys, checkpoint, flag(given, "autocompact"))


def stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> LanceStreamWriter:
    """Return the writer of one batch, with the table's version pinned (on the driver).

    ``overwrite``: the query has the output mode ``complete``.
    """
    check_release(
        (4, 1),
        'writeStream.format("lance")',
        "call pennon.spark.write in foreachBatch, or upsert_batches",
    )
    parsed = SinkOptions.parse(options)
    if parsed.keys:
        if overwrite:
            message = "mergeOn goes with the output modes append and update; complete writes the table anew"
            raise ArgumentError(message)
        plan = plan_replacement(parsed.write, schema)
        return LanceStreamWriter(plan, parsed, tuple(key_columns(plan, parsed.write)))
    mode = WriteMode.OVERWRITE if overwrite else WriteMode.APPEND
    return LanceStreamWriter(plan_table_write(parsed.write, schema, mode), parsed, ())


class LanceStreamWriter(ds.DataSourceStreamArrowWriter):
    """Writes one batch of a stream: appends it, overwrites the table, or replaces the rows that have its keys."""

    def __init__(self, plan: TablePlan, options: SinkOptions, keys: tuple[str, ...]) -> None:
        """Take the plan, with the version that the driver read in it."""
        self._plan = plan
        self._options = options
        self._keys = keys

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what tasks need: the size does not grow with the table.  Spark makes another writer for the commit."""
        return {**self.__dict__, "_plan": self._plan.travelling()}

    @property
    def _task(self) -> TableWrite:
        return TableWrite(self._plan.write.task)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchWritten:
        """Write the rows of one task (on an executor)."""
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(QUERY)
        return BatchWritten(message_of(self._task, iterator), query)

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None], batchId: int) -> None:
        """Make one version of what all tasks wrote, unless the batch was committed before (on the driver)."""
        told = [each for each in messages if isinstance(each, BatchWritten)]
        fragments = [new for each in told for new in self._task.from_bytes(each.answer)]
        if not fragments and self._plan.write.mode is not WriteMode.OVERWRITE:
            return
        app = self._app(told)
        self._tell_of_other_queries(app)
        plan = replace(self._plan, app=AppVersion(app, batchId))
        self._commit(plan, fragments)
        if self._options.compacts:
            rows = sum(each.physical_rows or 0 for each in fragments)
            with suppress(CommitError):  # another was faster; a later batch compacts these, too
                compact_level(plan.write.task.store, batchId, rows)

    def _tell_of_other_queries(self, app: str) -> None:
        """Warn at the first batch that a query appends, if other queries have appended before.

        A query that is started again with a new checkpoint is a new one to Spark, and appends all its input once more.
        """
        appends = self._plan.write.mode is WriteMode.APPEND and not self._keys
        if self._plan.base is None or not appends or self._options.app is not None:
            return
        known = apps_of(self._plan.base.config)
        queries = [f"{name} (last batch: {last})" for name, last in known.items() if _is_uuid(name)]
        if queries and app not in known:
            message = (
                f"query {app} appends its first batch to a table that has batches of {', '.join(sorted(queries))}; if "
                "it is one of these, started again with a new checkpoint, its input is appended a second time: give "
                "both the same txnAppId, or start it with the old checkpoint"
            )
            warnings.warn(message, UserWarning, stacklevel=3)

    def _commit(self, plan: TablePlan, fragments: Sequence[Fragment]) -> None:
        if not self._keys:
            commit_fragments(plan, fragments)
            return
        among = self._distinct_keys(plan, fragments)
        if plan.base is None:
            commit_fragments(plan, fragments)
            return
        condition = f"({', '.join(self._keys)}) as in the new rows"
        commit_replaced(plan, fragments, delete_here(among), condition)

    def abort(self, messages: Sequence[ds.WriterCommitMessage | None], batchId: int) -> None:
        """Delete nothing: no version names the files, and another attempt may still be writing."""

    def _distinct_keys(self, plan: TablePlan, fragments: Sequence[Fragment]) -> AmongKeys:
        """Return the keys of the new rows; raises MatchError if two rows have the same."""
        among = keys_of(plan, fragments, self._keys)
        rows = sum(each.physical_rows or 0 for each in fragments)
        if among.keys.num_rows != rows:
            message = (
                f"the batch has {rows} rows of {among.keys.num_rows} different values of mergeOn "
                f"({', '.join(self._keys)}); leave one row of each, by dropDuplicates or an aggregate in mode update"
            )
            raise MatchError(message)
        return among

    def _app(self, told: Sequence[BatchWritten]) -> str:
        """Return what names the application: the option, or the id of the query.

        Raises ArgumentError if nothing tells the query.
        """
        if self._options.app is not None:
            return self._options.app
        queries = {each.query for each in told if each.query}
        if len(queries) == 1:
            return queries.pop()
        found = _query_of(self._options.checkpoint)
        if found is None:
            message = (
                "Spark tells the id of this query neither to its tasks nor in a checkpoint that can be read; name the "
                "application by option txnAppId, so that a batch that is run again is known"
            )
            raise ArgumentError(message)
        return found


def _is_uuid(name: str) -> bool:
    """Tell whether a name is one that Spark gives a query."""
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


def _query_of(checkpoint: str | None) -> str | None:
    """Return the id of the query that a checkpoint is of; None if it cannot be read."""
    if checkpoint is None:
        return None
    try:
        data = open_store(checkpoint).read_whole("metadata").to_pybytes()
        found = json.loads(data).get("id")
    except (LanceError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) and found else None
