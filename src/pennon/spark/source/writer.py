"""Writing side of ``format("lance")``: one fragment writer a task, one commit on the driver.

The writer is made on the driver, where it pins the version it read; Spark pickles it to the tasks
and, with their messages, to the commit.  ``abort`` deletes nothing: the files of a failed write are
orphans that no version refers to, and another attempt may still be writing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from pennon.spark.pyspark_classes import ds
from pennon.spark.run_tasks import Task, message_of
from pennon.spark.source.row_write import TablePlan, TableWrite, commit_fragments

R = TypeVar("R")


@dataclass(frozen=True)
class FragmentsWritten(ds.WriterCommitMessage):
    """The fragments that one task wrote, as bytes."""

    answer: bytes


class LanceWriter(ds.DataSourceArrowWriter):
    """Appends to a table (or creates it), or overwrites it."""

    def __init__(self, plan: TablePlan) -> None:
        """Take the plan, with the version that the driver read in it."""
        self._plan = plan

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what tasks and the commit need: the size does not grow with the table."""
        return {**self.__dict__, "_plan": self._plan.travelling()}

    @property
    def _task(self) -> TableWrite:
        return TableWrite(self._plan.write.task)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FragmentsWritten:
        """Write the rows of one task (on an executor)."""
        return FragmentsWritten(message_of(self._task, iterator))

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        """Make one version of what all tasks wrote (on the driver)."""
        written = answers(self._task, messages)
        commit_fragments(self._plan, [each for several in written for each in several])

    def abort(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        """Delete nothing."""


def answers(
    task: Task[Iterator[pa.RecordBatch], R], messages: Sequence[ds.WriterCommitMessage | None]
) -> list[R]:
    """Return the answers of a task in the messages of all its runs; raises FormatError."""
    return [task.from_bytes(m.answer) for m in messages if isinstance(m, FragmentsWritten)]
