"""Writing one more data file for a fragment: columns beside those that it has.

The new file has the rows of the others, deleted ones among them, and the table's file version.  In
version 0.1 it has their row groups as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import FieldId
from pennon.errors import ArgumentError
from pennon.file.container.write_limits import RowGroups
from pennon.file.container.writer_base import FileWriter, WrittenFile
from pennon.file.open import create_data_file
from pennon.io.store import ObjectWriter, Store
from pennon.ops.columns.fill_deleted import with_deleted_rows
from pennon.ops.fit import fit_batch
from pennon.ops.write import new_file_name
from pennon.scan.fragment_reader import FragmentReader
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.field import Schema
from pennon.schema.version import V0_1, FileVersion
from pennon.table.fragment import DataFileRef


@dataclass(frozen=True, slots=True)
class ColumnFiles:
    """Where and how new columns are written; it pickles.

    ``schema`` has the new columns, with their ids in the table.
    """

    store: Store
    schema: Schema
    version: FileVersion

    def write(self, reader: FragmentReader, batches: Iterable[pa.RecordBatch]) -> DataFileRef:
        """Write the columns of a fragment, given those of its live rows, in order.

        Raises SchemaMismatchError for a NULL in a column that is never NULL, ArgumentError if the
        rows are not as many as the fragment has.
        """
        name = new_file_name()
        with self._open(self.store.open_writer(f"data/{name}"), reader) as writer:
            for batch in self._rows(reader, batches):
                writer.write(batch)
            return _ref(name, writer.finish())

    def _open(self, sink: ObjectWriter, reader: FragmentReader) -> FileWriter[Any]:
        groups = RowGroups(borders=_borders(reader)) if self.version == V0_1 else None
        return create_data_file(sink, self.schema, self.version, groups=groups)

    def _rows(
        self, reader: FragmentReader, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Return all rows of the new file."""
        live, target = reader.live_rows(), schema_to_arrow(self.schema)
        if not live.count:
            nothing = [pa.nulls(live.physical_rows, field.type) for field in target]
            return iter([pa.RecordBatch.from_arrays(nothing, schema=target)])
        fitted = _counted((fit_batch(batch, target) for batch in batches), live.count)
        return with_deleted_rows(fitted, live, may_be_null=self.version != V0_1)


def _borders(reader: FragmentReader) -> Int64Array:
    """Return the borders of the row groups of a fragment's files."""
    for file in reader.files:
        borders = reader.snapshot.open_file(file.ref).data.row_groups
        if borders is not None:
            return borders
    return np.array([0, reader.physical_rows()], np.int64)


def _counted(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Pass batches on.  Raises ArgumentError if they have not so many rows in all."""
    seen = 0
    for batch in batches:
        seen += batch.num_rows
        yield batch
    if seen != rows:
        message = f"new columns have {seen} rows for a fragment of {rows}"
        raise ArgumentError(message)


def _ref(name: str, written: WrittenFile) -> DataFileRef:
    ids = tuple(FieldId(number) for number in written.field_ids)
    numbers = written.version.to_numbers()
    return DataFileRef(name, ids, written.column_indices, *numbers, written.size_bytes)
