"""Writing side of ``format("lance")``: one fragment writer a task, one commit on the driver.

The writer is made on the driver, where it pins the version it read; Spark pickles it to the tasks
and, with their messages, to the commit.  ``abort`` deletes nothing: the files of a failed write are
orphans that no version refers to, and another attempt may still be writing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import datasource as ds

from pennon.spark.source.row_write import TablePlan, TableWrite, commit_messages


@dataclass(frozen=True)
class FragmentsWritten(ds.WriterCommitMessage):
    """The fragments that one task wrote (`pennon.spark.messages`)."""

    fragments: bytes


class LanceWriter(ds.DataSourceArrowWriter):
    """Appends to a table (or creates it), or overwrites it."""

    def __init__(self, plan: TablePlan) -> None:
        """Take the plan, with the version that the driver read in it."""
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FragmentsWritten:
        """Write the rows of one task (on an executor)."""
        return FragmentsWritten(TableWrite(self._plan.write.task)(iterator))

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        """Make one version of what all tasks wrote (on the driver)."""
        written = (m.fragments for m in messages if isinstance(m, FragmentsWritten))
        commit_messages(self._plan, written)

    def abort(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        """Delete nothing."""
