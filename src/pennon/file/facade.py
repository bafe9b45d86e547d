"""Data files by themselves, with the names and signatures of ``lance.file``.

A table is more than its files (`pennon.dataset`); this is for those who want just one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Self, Unpack

import numpy as np
import pyarrow as pa

from pennon.compat.arguments import refuse
from pennon.compat.option_types import NotSupportedYet
from pennon.core.units import MIB
from pennon.encoding.exact_batches import exact_batches
from pennon.encoding.rows import Rows
from pennon.errors import ArgumentError, InvalidSchemaError, UnsupportedError
from pennon.file.container.file import DataFile
from pennon.file.container.input_check import InputCheck
from pennon.file.container.write_limits import (
    DEFAULT_CACHE_BYTES,
    DEFAULT_MAX_PAGE_BYTES,
    PageLimits,
)
from pennon.file.describe import LanceFileMetadata, LanceFileStatistics, describe, summarize
from pennon.file.open import create_container_file, open_data_file
from pennon.io import open_store
from pennon.io.durability import hands_over
from pennon.io.store import Opens, Writes
from pennon.schema.arrow import schema_from_arrow, schema_to_arrow
from pennon.schema.check import default_version
from pennon.schema.field import Schema
from pennon.schema.project import project
from pennon.schema.version import FileVersion
from pennon.schema.width import row_bytes

if TYPE_CHECKING:  # who reads a file does not wait for what writes one
    from pennon.file.container.writer import DataFileWriter

WINDOW_BYTES: Final = 16 * MIB
"""About so much of a file is read at once, and then handed out in batches."""


class ReaderResults:
    """The rows that a read of a file found, as batches or as a table; they are read once, when asked for.

    >>> from pennon.file import LanceFileReader, LanceFileWriter
    >>> with LanceFileWriter(uri) as writer:
    ...     writer.write_batch(pa.table({"id": [1, 2, 3]}))
    >>> LanceFileReader(uri).read_all().to_table().num_rows
    3
    """

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self.reader = reader

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the rows as batches, one after the other."""
        return self.reader

    def to_table(self) -> pa.Table:
        """Return the rows as one table."""
        return self.reader.read_all()


class LanceFileReader:
    """Reads one data file at ``path``, a local path or a URI; ``columns`` limits what is read.

    >>> from pennon.file import LanceFileReader, LanceFileWriter
    >>> with LanceFileWriter(uri) as writer:
    ...     writer.write_batch(pa.table({"id": [1, 2, 3]}))
    >>> LanceFileReader(uri).take_rows([0, 2]).to_table()["id"].to_pylist()
    [1, 3]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        columns: Sequence[str] | None = None,
        **unsupported: Unpack[NotSupportedYet],
    ) -> None:
        refuse(unsupported, LanceFileReader.__init__)
        folder, name = split_path(path)
        self._open(open_store(folder, storage_options), name, columns)

    @classmethod
    def in_store(cls, store: Opens, name: str, columns: Sequence[str] | None = None) -> Self:
        """Open a file of a store."""
        reader = cls.__new__(cls)
        reader._open(store, name, columns)  # noqa: SLF001 - of its own class
        return reader

    def _open(self, store: Opens, name: str, columns: Sequence[str] | None) -> None:
        self._file = open_data_file(store.open(name))
        self._schema = self._file.schema if columns is None else self._project(columns)

    def _project(self, columns: Sequence[str]) -> Schema:
        if not columns:
            message = "at least one column must be read"
            raise ArgumentError(message)
        try:
            return project(self._file.schema, list(columns))
        except ArgumentError as error:
            raise InvalidSchemaError(error.message) from None

    def read_all(self, *, batch_size: int = 1024, batch_readahead: int = 16) -> ReaderResults:  # noqa: ARG002
        """Read all rows, in batches of ``batch_size``."""
        return self._results([Rows.between(0, self._file.num_rows)], batch_size)

    def read_range(
        self,
        start: int,
        num_rows: int,
        *,
        batch_size: int = 1024,
        batch_readahead: int = 16,  # noqa: ARG002
    ) -> ReaderResults:
        """Read ``num_rows`` rows from row ``start`` on.  Raises ArgumentError if there are less."""
        if start < 0 or num_rows < 0 or start + num_rows > self._file.num_rows:
            rows = self._file.num_rows
            message = f"rows {start}..{start + num_rows} of a file that has {rows} rows"
            raise ArgumentError(message)
        return self._results([Rows.between(start, start + num_rows)], batch_size)

    def take_rows(
        self,
        indices: Sequence[int],
        *,
        batch_size: int = 1024,
        batch_readahead: int = 16,  # noqa: ARG002
    ) -> ReaderResults:
        """Read rows by number.  Raises ArgumentError unless the numbers rise and exist."""
        wanted = np.asarray(indices, np.int64)
        if np.any(wanted[1:] <= wanted[:-1]):
            message = "indices must be sorted in ascending order, each once"
            raise ArgumentError(message)
        if len(wanted) and (wanted[0] < 0 or wanted[-1] >= self._file.num_rows):
            rows = self._file.num_rows
            message = f"rows {wanted[0]}..{wanted[-1]} of a file that has {rows} rows"
            raise ArgumentError(message)
        return self._results([Rows.at(wanted)], batch_size)

    def metadata(self) -> LanceFileMetadata:
        """Return what the file says of itself: schema, columns, pages, buffers."""
        return describe(self._structural())

    def file_statistics(self) -> LanceFileStatistics:
        """Return the number of pages and bytes of each column."""
        return summarize(self._structural())

    def read_global_buffer(self, index: int) -> bytes:
        """Return a global buffer; number 0 holds the schema."""
        data: bytes = self._structural().global_buffer(index).to_pybytes()
        return data

    def num_rows(self) -> int:
        """Return the number of rows of the file."""
        return self._file.num_rows

    def _structural(self) -> DataFile:
        """Return the file, which is not of version 0.1.  Raises UnsupportedError if it is."""
        if isinstance(self._file, DataFile):
            return self._file
        message = "files of version 0.1 have neither encodings nor global buffers to describe"
        raise UnsupportedError(message)

    def _results(self, rows: Sequence[Rows], batch_size: int) -> ReaderResults:
        if batch_size <= 0:
            message = f"batches of {batch_size} rows"
            raise ArgumentError(message)
        schema = schema_to_arrow(self._schema)
        batches = self._batches(rows[0], schema, batch_size)
        return ReaderResults(pa.RecordBatchReader.from_batches(schema, batches))

    def _batches(self, rows: Rows, schema: pa.Schema, batch_size: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches; they are read in windows of many batches."""
        stored = self._file.source.size_bytes // max(self._file.num_rows, 1)
        window = (
            max(WINDOW_BYTES // max(stored, row_bytes(schema), 1) // batch_size, 1) * batch_size
        )
        for start in range(0, rows.count, window):
            part = rows.window(start, min(start + window, rows.count))
            batch = self._read(part, schema)
            pieces = range(0, batch.num_rows, batch_size)
            yield from exact_batches(batch.slice(at, batch_size) for at in pieces)

    def _read(self, rows: Rows, schema: pa.Schema) -> pa.RecordBatch:
        """Read rows into one batch."""
        chunks = self._file.read_rows(self._schema.fields, self._file.column_of, rows)
        columns = [parts[0] if len(parts) == 1 else pa.concat_arrays(parts) for parts in chunks]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


class LanceFileWriter:
    """Writes one data file at ``path``, a local path or a URI; threads may share the writer.

    Without a ``schema``, that of the first batch is taken.  A ``with`` block that ends in an
    exception leaves no file.

    >>> from pennon.file import LanceFileReader, LanceFileWriter
    >>> with LanceFileWriter(uri) as writer:
    ...     writer.write_batch(pa.table({"id": [1, 2, 3]}))
    >>> LanceFileReader(uri).num_rows()
    3
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema | None = None,
        *,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        max_page_bytes: int | None = None,
        rows_per_zone: int | None = None,
        **unsupported: Unpack[NotSupportedYet],
    ) -> None:
        refuse(unsupported, LanceFileWriter.__init__)
        folder, name = split_path(path)
        self._begin(
            open_store(folder, storage_options),
            name,
            schema,
            data_cache_bytes=data_cache_bytes,
            version=version,
            max_page_bytes=max_page_bytes,
            rows_per_zone=rows_per_zone,
        )

    @classmethod
    def in_store(
        cls,
        store: Writes,
        name: str,
        schema: pa.Schema | None = None,
        *,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        max_page_bytes: int | None = None,
    ) -> Self:
        """Start a file of a store; options are those of the class."""
        writer = cls.__new__(cls)
        writer._begin(  # noqa: SLF001 - of its own class
            store,
            name,
            schema,
            data_cache_bytes=data_cache_bytes,
            version=version,
            max_page_bytes=max_page_bytes,
        )
        return writer

    def _begin(
        self,
        store: Writes,
        name: str,
        schema: pa.Schema | None,
        *,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        max_page_bytes: int | None = None,
        rows_per_zone: int | None = None,
    ) -> None:
        self._store, self._name = store, name
        self._version = None if version is None else FileVersion.parse(version)
        self._cache_bytes = data_cache_bytes
        self._page_bytes = max_page_bytes or DEFAULT_MAX_PAGE_BYTES
        self._rows_per_zone = rows_per_zone
        self._metadata: dict[str, str] = {}
        self._writer: DataFileWriter | None = None
        self._check = InputCheck()
        self._lock = threading.RLock()
        self.closed = False
        if schema is not None:
            self._start(schema)

    def write_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Write a batch, or the batches of a table, without a batch of another thread between.

        Raises ArgumentError for data that is not valid Arrow data; nothing of it is written.
        """
        with self._lock:
            parts = batch.to_batches() if isinstance(batch, pa.Table) else [batch]
            for part in parts:
                self._check.check(part)
            writer = self._writer or self._start(batch.schema)
            for part in parts:
                writer.write(part)

    @hands_over
    def close(self) -> int | None:
        """Finish the file and return its number of rows; None if it was closed before.

        Raises ArgumentError if there was neither a schema nor a batch.
        """
        with self._lock:
            if self.closed:
                return None
            self.closed = True
            return self._opened().finish().num_rows

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Add an entry to the schema's metadata."""
        with self._lock:
            self._metadata[key] = value
            if self._writer is not None:
                self._writer.add_schema_metadata(self._metadata)

    def add_global_buffer(self, data: bytes) -> int:
        """Add bytes that belong to the file as a whole; return their number, from 1 on."""
        with self._lock:
            return self._opened().add_global_buffer(data)

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Finish the file, or give it up when an exception is on its way."""
        if kind is None:
            self.close()
        elif self._writer is not None:
            self.closed = True
            self._writer.abort()

    def _start(self, schema: pa.Schema) -> DataFileWriter:
        fields = schema_from_arrow(schema)
        version = self._version or default_version(fields)
        cache_bytes = DEFAULT_CACHE_BYTES
        if self._cache_bytes is not None:
            cache_bytes = self._cache_bytes // max(len(fields.fields), 1)
        limits = PageLimits(cache_bytes, self._page_bytes, self._rows_per_zone)
        sink = self._store.open_writer(self._name)
        self._writer = create_container_file(sink, fields, version, limits=limits)
        self._writer.add_schema_metadata(self._metadata)
        return self._writer

    def _opened(self) -> DataFileWriter:
        if self._writer is None:
            message = "Schema is unknown and file cannot be created: no schema, and no batch"
            raise ArgumentError(message)
        return self._writer


def stable_version() -> str:
    """Return the file version that ``stable`` means.

    >>> from pennon.file import stable_version
    >>> stable_version()
    '2.2'
    """
    return str(FileVersion.parse("stable"))


def split_path(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the folder of a file, as a path or URI, and its name."""
    folder, slash, name = os.fspath(path).rpartition("/")
    return (folder or slash or "."), name
