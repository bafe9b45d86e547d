"""Data sources that fail on purpose; Spark's workers import them by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pennon.spark.source import LanceDataSource
from pennon.spark.writer import FragmentsWritten, LanceWriter


class _Failing(LanceDataSource):
    """Takes the marker file out of the options (as a suffix of the path, after ``#``)."""

    wrapper: type[LanceWriter]

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        path, _, marker = self.options["path"].partition("#")
        self.options = {**self.options, "path": path}
        inner = super().writer(schema, overwrite)
        wrapped = self.wrapper(inner._plan)
        wrapped.marker = marker  # type: ignore[attr-defined]
        return wrapped


class _DyingWriter(LanceWriter):
    marker: str

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FragmentsWritten:
        return super().write(self._die_once(iterator))

    def _die_once(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 1 and self._is_first():
                os._exit(17)
            yield batch

    def _is_first(self) -> bool:
        try:
            Path(self.marker).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


class _UncommittableWriter(LanceWriter):
    marker: str

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        message = "the commit fails on purpose"
        raise OSError(message)

    def abort(self, messages: Sequence[Any]) -> None:
        Path(self.marker).write_text(str(len(messages)))
        super().abort(messages)


class DyingSource(_Failing):
    """The worker process of one task dies in the middle of its rows, the first time."""

    wrapper = _DyingWriter

    @classmethod
    def name(cls) -> str:
        return "lance_dying"


class UncommittableSource(_Failing):
    """All tasks succeed and the commit fails; ``abort`` leaves a note."""

    wrapper = _UncommittableWriter

    @classmethod
    def name(cls) -> str:
        return "lance_uncommittable"
