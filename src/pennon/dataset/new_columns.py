"""From what a caller describes new columns with to a plan: SQL, functions, data, or just fields."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa

from pennon.dataset.udf import BatchUDF, as_batch
from pennon.errors import ArgumentError
from pennon.ops.columns.add import (
    AddPlan,
    commit_add,
    plan_columns,
    plan_null_columns,
    plan_sql_columns,
)
from pennon.ops.columns.checkpoint import Checkpoint, CheckpointedTask
from pennon.ops.columns.column_sources import FollowingRows, FunctionColumns
from pennon.ops.columns.merge import plan_merge
from pennon.ops.columns.names import find_column
from pennon.ops.columns.task import ColumnsTask
from pennon.ops.run_tasks import run_tasks
from pennon.ops.source import as_reader
from pennon.scan.projection import MetaColumn, Projection, plan_scan_projection
from pennon.scan.read.execute import Scan, read_batches
from pennon.scan.read.tasks import BATCH_ROWS_VARIABLE, default_batch_rows, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Schema
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest

FUNCTION_ROWS: Final = 1024
"""Rows of the batches that a function gets, unless the caller or the environment says otherwise."""
_META_NAMES: Final = frozenset(meta.value for meta in MetaColumn)


@dataclass(frozen=True, slots=True)
class NewColumns:
    """A plan to add columns, and where its results are kept meanwhile, if anywhere."""

    plan: AddPlan
    checkpoint: Checkpoint | None = None

    @property
    def task(self) -> ColumnsTask | CheckpointedTask | None:
        """Return what writes the columns of a fragment; None if nothing is to be written."""
        task = self.plan.task
        if task is None or self.checkpoint is None:
            return task
        return CheckpointedTask(task, self.checkpoint)

    @classmethod
    def merged(
        cls, snapshot: Snapshot, data: Any, left_on: str, right_on: str | None, schema: Any
    ) -> Self:
        """Plan to add the columns of other data, joined by a key; see `LanceDataset.merge`."""
        key = left_on if right_on is None else right_on
        return cls(plan_merge(snapshot, as_reader(data, schema), left_on, key))

    @staticmethod
    def described(
        snapshot: Snapshot,
        transforms: Any,
        read_columns: Sequence[str] | None,
        reader_schema: pa.Schema | None,
        batch_rows: int | None,
    ) -> NewColumns:
        """Plan to add the columns that ``transforms`` describes; see `LanceDataset.add_columns`."""
        return plan_fields(snapshot, transforms) or plan_new_columns(
            snapshot, transforms, read_columns, reader_schema, batch_rows
        )

    def commit(self) -> Manifest:
        """Write the columns of all fragments, and make them a version of the table."""
        manifest = commit_add(self.plan, self.run())
        if self.checkpoint is not None:
            self.checkpoint.clear()
        return manifest

    def run(self) -> list[Fragment]:
        """Write the columns of all fragments; return the fragments."""
        if self.task is None or self.plan.task is None:
            return list(self.plan.fragments)
        task, threads = self.task, self.plan.task.threads
        fragments = run_tasks(task, task.count, what="Adding columns", threads=threads)
        self._check_end()
        return fragments

    def run_one(self, number: int) -> Fragment:
        """Write the columns of the fragment of that number alone; return the fragment."""
        if self.task is None:
            return self.plan.fragments[number]
        fragment = self.task.run(number)
        self._check_end()
        return fragment

    def _check_end(self) -> None:
        """Raise SchemaMismatchError if a reader has rows left."""
        if self.plan.task is not None and isinstance(self.plan.task.maker, FollowingRows):
            self.plan.task.maker.check_end()


def plan_fragment_columns(
    snapshot: Snapshot,
    fragment: Fragment,
    transforms: Any,
    read_columns: Sequence[str] | None,
    reader_schema: pa.Schema | None,
    batch_rows: int | None,
) -> NewColumns:
    """Plan to add columns to one fragment, for a commit by hand.

    Raises ArgumentError for a function with a checkpoint.
    """
    if isinstance(transforms, BatchUDF) and transforms.cache is not None:
        message = (
            "A checkpoint file cannot be used for one fragment: nothing is committed here, so "
            "nobody knows when it has done its duty"
        )
        raise ArgumentError(message)
    return plan_new_columns(
        snapshot, transforms, read_columns, reader_schema, batch_rows, [fragment]
    )


def plan_new_columns(
    snapshot: Snapshot,
    transforms: Any,
    read_columns: Sequence[str] | None = None,
    reader_schema: pa.Schema | None = None,
    batch_rows: int | None = None,
    fragments: Sequence[Fragment] | None = None,
) -> NewColumns:
    """Plan to add the columns that ``transforms`` describes; see `LanceDataset.add_columns`.

    ``fragments`` are those of which a row is shown to a function that does not tell its schema.
    Raises TypeError for what describes no columns.
    """
    if batch_rows is not None and batch_rows < 1:
        message = f"batch_size must be at least 1, got {batch_rows}"
        raise ArgumentError(message)
    if isinstance(transforms, Mapping):
        _check_texts(transforms)
        return NewColumns(plan_sql_columns(snapshot, transforms, batch_rows))
    if isinstance(transforms, BatchUDF) or callable(transforms):
        return _plan_function(snapshot, transforms, read_columns, batch_rows, fragments)
    try:
        reader = as_reader(transforms, reader_schema)
    except TypeError as error:
        message = (
            "new columns are described by a dict of SQL, a function, or data; "
            f"got {type(transforms).__name__}: {error}"
        )
        raise TypeError(message) from None
    return NewColumns(plan_columns(snapshot, reader.schema, FollowingRows(reader), batch_rows))


def plan_fields(snapshot: Snapshot, fields: Any) -> NewColumns | None:
    """Return the plan for columns of NULLs, if that is what fields describe, else None."""
    if isinstance(fields, pa.Field):
        fields = [fields]
    if isinstance(fields, list) and fields and isinstance(fields[0], pa.Field):
        fields = pa.schema(fields)
    if not isinstance(fields, pa.Schema):
        return None
    return NewColumns(plan_null_columns(snapshot, fields))


def _check_texts(transforms: Mapping[Any, Any]) -> None:
    for name, text in transforms.items():
        if not isinstance(name, str) or not isinstance(text, str):
            message = f"columns are named and computed by text, but there is {name!r}: {text!r}"
            raise TypeError(message)


def _plan_function(
    snapshot: Snapshot,
    function: BatchUDF | Callable[[pa.RecordBatch], Any],
    read_columns: Sequence[str] | None,
    batch_rows: int | None,
    fragments: Sequence[Fragment] | None,
) -> NewColumns:
    inputs = _inputs(snapshot.manifest.schema, read_columns)
    if isinstance(function, BatchUDF):
        udf = function
        if udf.output_schema is None:
            udf.output_schema = _shown(udf, _first_row(snapshot, inputs, fragments))
    else:
        udf = BatchUDF(function, _tried(function, _first_row(snapshot, inputs, fragments)))
    rows = batch_rows or _default_rows()
    maker = FunctionColumns(udf.run, inputs)
    plan = plan_columns(snapshot, _plain(udf.output_schema), maker, rows)
    return NewColumns(plan, udf.cache)


def _plain(schema: pa.Schema | None) -> pa.Schema:
    """Return the schema without metadata of its own, which pandas leaves there."""
    return pa.schema([]) if schema is None else schema.remove_metadata()


def _inputs(schema: Schema, read_columns: Sequence[str] | None) -> Projection:
    for name in read_columns or ():
        if name not in _META_NAMES:
            find_column(schema, name)
    return plan_scan_projection(schema, None if read_columns is None else list(read_columns))


def _first_row(
    snapshot: Snapshot, inputs: Projection, fragments: Sequence[Fragment] | None
) -> pa.RecordBatch:
    """Return a row to try a function on.  Raises ArgumentError if there is none."""
    scan = Scan(snapshot, inputs, tuple(plan_tasks(snapshot, fragments, limit=1)))
    found = next(iter(read_batches(scan, 1)), None)
    if found is None:
        message = "there is no row to try the function on; give it an output_schema (batch_udf)"
        raise ArgumentError(message)
    return found


def _shown(function: Callable[[pa.RecordBatch], Any], batch: pa.RecordBatch) -> pa.Schema:
    return as_batch(function(batch)).schema


def _tried(function: Callable[[pa.RecordBatch], Any], batch: pa.RecordBatch) -> pa.Schema:
    """Return the schema of what a plain function returns.  Raises TypeError if it fails."""
    try:
        return _shown(function, batch)
    except Exception as error:
        message = (
            f"{function!r} makes no columns; called with a batch of the table it gave {error!r}"
        )
        raise TypeError(message) from error


def _default_rows() -> int:
    return default_batch_rows(0) if BATCH_ROWS_VARIABLE in os.environ else FUNCTION_ROWS
