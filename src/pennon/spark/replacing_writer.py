"""Writing side of ``format("lance")`` where a part of a table is overwritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import datasource as ds

from pennon.scan.filter import Predicate
from pennon.spark.messages import parse_fragments
from pennon.spark.replaced_rows import (
    FindRows,
    commit_replaced,
    delete_here,
    delete_where_here,
    keys_of,
)
from pennon.spark.row_write import (
    CheckedWrite,
    TablePlan,
    TableWrite,
    commit_fragments,
    parse_checked,
)
from pennon.spark.writer import FragmentsWritten, LanceWriter
from pennon.table.fragment import Fragment


class ReplacingWriter(LanceWriter):
    """Replaces a part of a table: the rows of a condition, or those with the keys of the new rows.

    The rows that go are found by the driver's Python, for a data source has no other place for it.
    """

    def __init__(
        self, plan: TablePlan, *, condition: str, rows: Predicate | None, keys: tuple[str, ...]
    ) -> None:
        """Take the plan, and what is replaced: ``rows`` is the condition on the DataFrame's rows."""
        super().__init__(plan)
        self._condition = condition
        self._rows = rows
        self._keys = keys

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FragmentsWritten:
        """Write the rows of one task, each tested (on an executor)."""
        write = TableWrite(self._plan.write.task)
        if self._rows is None:
            return FragmentsWritten(write(iterator))
        return FragmentsWritten(CheckedWrite(write, self._rows)(iterator))

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        """Find what goes, and make one version of it (on the driver)."""
        written = [m.fragments for m in messages if isinstance(m, FragmentsWritten)]
        if self._rows is not None:
            fragments = parse_checked(written, self._condition)
        else:
            fragments = [each for message in written for each in parse_fragments(message)]
        if self._plan.base is None:
            commit_fragments(self._plan, fragments)
        else:
            commit_replaced(self._plan, fragments, self._find(fragments), self._condition)

    def _find(self, fragments: Sequence[Fragment]) -> FindRows:
        if self._keys:
            if not fragments:
                return lambda _: ()
            return delete_here(keys_of(self._plan, fragments, self._keys))
        return delete_where_here(self._condition)
