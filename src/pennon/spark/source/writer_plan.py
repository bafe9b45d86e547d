"""Choose the writer of a data source: one for all rows, or one that replaces a part of a table, which is here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.types import StructType

from pennon.errors import ArgumentError
from pennon.ops.write import WriteMode
from pennon.scan.predicate import Predicate
from pennon.spark.pyspark_classes import ds
from pennon.spark.run_tasks import message_of
from pennon.spark.source.conditions import system_columns_named
from pennon.spark.source.options import WriteOptions
from pennon.spark.source.replaced_rows import (
    FindRows,
    commit_replaced,
    delete_here,
    delete_where_here,
    key_columns,
    keys_of,
    plan_replacement,
    understood,
    with_fragments,
)
from pennon.spark.source.row_write import CheckedWrite, TablePlan, accepted, commit_fragments
from pennon.spark.source.write_task import plan_table_write
from pennon.spark.source.writer import FragmentsWritten, LanceWriter, answers
from pennon.spark.types import arrow_schema
from pennon.table.fragment import Fragment


def plan_writer(options: WriteOptions, schema: StructType, *, overwrite: bool) -> LanceWriter:
    """Return the writer of a DataFrame, with the table's version pinned (on the driver).

    Raises ArgumentError for a condition that only Spark can evaluate.
    """
    if options.where is None and not options.overwrite_by:
        mode = WriteMode.OVERWRITE if overwrite else WriteMode.APPEND
        return LanceWriter(plan_table_write(options, schema, mode))
    if not overwrite:
        message = "replaceWhere and overwrite_by go with mode('overwrite')"
        raise ArgumentError(message)
    plan = plan_replacement(options, schema)
    if options.where is None:
        keys = tuple(key_columns(plan, options))
        condition = f"({', '.join(keys)}) as in the new rows"
        return ReplacingWriter(plan, condition=condition, rows=None, keys=keys)
    known = [] if plan.base is None else plan.base.schema.names
    system = system_columns_named([options.where], known, None)
    if system:  # new rows have none yet, so the condition says only which rows go
        return ReplacingWriter(plan, condition=options.where, rows=None, keys=(), system=system)
    rows = understood(options.where, schema, arrow_schema(schema))
    return ReplacingWriter(plan, condition=options.where, rows=rows, keys=())


class ReplacingWriter(LanceWriter):
    """Replaces a part of a table: the rows of a condition, or those with the keys of the new rows.

    The rows that go are found by the driver's Python, for a data source has no other place for it.
    """

    def __init__(
        self,
        plan: TablePlan,
        *,
        condition: str,
        rows: Predicate | None,
        keys: tuple[str, ...],
        system: Sequence[str] = (),
    ) -> None:
        """Take the plan, and what is replaced: ``rows`` is the condition on the DataFrame's rows."""
        super().__init__(plan)
        self._condition = condition
        self._rows = rows
        self._keys = keys
        self._system = tuple(system)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FragmentsWritten:
        """Write the rows of one task, each tested (on an executor)."""
        if self._rows is None:
            return super().write(iterator)
        task = CheckedWrite(self._task, self._rows)
        return FragmentsWritten(message_of(task, iterator))

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        """Find what goes, and make one version of it (on the driver)."""
        if self._rows is not None:
            checked = answers(CheckedWrite(self._task, self._rows), messages)
            fragments = accepted(checked, self._condition)
        else:
            fragments = [each for several in answers(self._task, messages) for each in several]
        if self._plan.base is None:
            commit_fragments(self._plan, fragments)
        else:
            found = self._find(fragments)
            plan = with_fragments(self._plan, self._plan.base)
            commit_replaced(plan, fragments, found, self._condition, self._system)

    def _find(self, fragments: Sequence[Fragment]) -> FindRows:
        if self._keys:
            if not fragments:
                return lambda _: ()
            return delete_here(keys_of(self._plan, fragments, self._keys))
        return delete_where_here(self._condition)
