"""The life of a data file that is being written, of any version: open, then finished or given up, once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Generic, Self, TypeVar

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import WorkAhead
from pennon.core.units import MIB
from pennon.errors import ArgumentError
from pennon.io.store import ObjectWriter
from pennon.schema.field import Schema
from pennon.schema.version import FileVersion

AHEAD_BYTES: Final = 32 * MIB
"""Bytes of rows that may be under way on threads, beyond those that must be written next."""

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file that was written, with all that a manifest says of it.

    ``field_ids`` are those of the fields that have a column, depth first, and ``column_indices``
    their columns.  The fields of packed structs have none.  A file of version 0.1 has no columns, but
    a page table in the order of the ids, so that they ascend.
    """

    num_rows: int
    size_bytes: int
    field_ids: tuple[int, ...]
    column_indices: tuple[int, ...]
    version: FileVersion


class FileWriter(ABC, Generic[Made]):
    """Takes record batches and becomes one data file; ``Made`` is what its threads make of rows.

    A writer that fails gives its file up: nothing appears under the name.  Leaving a ``with`` block
    finishes the file, or gives it up on an exception.
    """

    def __init__(self, sink: ObjectWriter, schema: Schema) -> None:
        self._sink = sink
        self._schema = schema
        self._ahead: WorkAhead[Made] = WorkAhead(AHEAD_BYTES)
        self._written: WrittenFile | None = None
        self._failed = False
        self._num_rows = 0

    @property
    def num_rows(self) -> int:
        """Return the number of rows that were taken so far."""
        return self._num_rows

    @property
    def size_bytes(self) -> int:
        """Return how many bytes of the file are written so far; rows held back are not."""
        return self._sink.tell()

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch; its columns are found by name.

        Raises ArgumentError if a column is missing or of another type, UnsupportedError if a value
        cannot be held; then the file is given up.
        """
        self._check_open()
        with self._whole_or_nothing():
            self._take(batch)

    def finish(self) -> WrittenFile:
        """Write all that is held back and the end of the file, and make it visible."""
        if self._written is not None:
            return self._written
        self._check_open()
        with self._whole_or_nothing():
            self._write_rest()
            size_bytes = self._sink.tell()
            self._sink.close()
        self._written = self._described(size_bytes)
        return self._written

    def abort(self) -> None:
        """Give the file up; nothing appears under its name.  Does nothing after `finish`."""
        if self._written is None and not self._failed:
            self._failed = True
            self._ahead.give_up()
            self._sink.abort()

    @abstractmethod
    def add_schema_metadata(self, metadata: Mapping[str, str | bytes]) -> None:
        """Add entries to the schema's metadata, which is written at the end."""

    @abstractmethod
    def _take(self, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch."""

    @abstractmethod
    def _write_rest(self) -> None:
        """Write all that is held back, and the end of the file."""

    @abstractmethod
    def _described(self, size_bytes: int) -> WrittenFile:
        """Return what was written."""

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Finish the file, or give it up when an exception is on its way."""
        if kind is not None:
            self.abort()
        elif not self._failed:
            self.finish()

    def _check_open(self) -> None:
        if self._failed or self._written is not None:
            message = f"the file was {'given up' if self._failed else 'finished'} already"
            raise ArgumentError(message)

    @contextmanager
    def _whole_or_nothing(self) -> Iterator[None]:
        """Give the file up if what is done within fails."""
        try:
            yield
        except BaseException:
            self.abort()
            raise
