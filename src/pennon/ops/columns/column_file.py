"""Data files of columns: writing one more for a fragment, and adopting one that lies there already.

A new file has the rows of the others, deleted ones among them, and the table's file version.  In
version 0.1 it has their row groups as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import FieldId, FragmentId
from pennon.errors import ArgumentError, Breadcrumb, LanceError, SchemaMismatchError
from pennon.file.container.write_limits import RowGroups
from pennon.file.container.writer_base import FileWriter, WrittenFile
from pennon.file.open import create_data_file
from pennon.io.store import ObjectWriter, Store
from pennon.ops.blob_files import BlobFiles, BlobRule
from pennon.ops.fit import fit_batch, fit_schema
from pennon.ops.write import new_file_name
from pennon.scan.deletion_mask import LiveRows
from pennon.scan.read.file_columns import FileColumns
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.snapshot import Snapshot
from pennon.schema.blob_arrays import written_schema
from pennon.schema.field import Field, Schema
from pennon.schema.version import V0_1, FileVersion
from pennon.table.fragment import DataFileRef, Fragment, WrittenColumns
from pennon.table.storage_version import storage_version


@dataclass(frozen=True, slots=True)
class ColumnFiles:
    """The place and the format of new columns' files; it pickles.

    ``schema`` has the new columns, with their ids in the table.
    """

    store: Store
    schema: Schema
    version: FileVersion
    blobs: BlobRule

    @classmethod
    def of(cls, snapshot: Snapshot, schema: Schema, version: FileVersion) -> Self:
        """Return how columns are written for a version of a table; blobs may lie in its base paths."""
        return cls(snapshot.store, schema, version, BlobRule(bases=snapshot.manifest.base_paths))

    def write(self, reader: FragmentReader, batches: Iterable[pa.RecordBatch]) -> DataFileRef:
        """Write the columns of a fragment, given those of its live rows, in order.

        Raises SchemaMismatchError for a NULL in a column that is never NULL, ArgumentError if the
        rows are not as many as the fragment has.
        """
        ref = DataFileRef(new_file_name(), (), (), *self.version.to_numbers())
        with (
            self._open(self.store.open_writer(ref.store_path), reader) as writer,
            BlobFiles.beside(self.store, ref, self.schema, self.blobs) as blobs,
        ):
            for batch in self._rows(reader, batches):
                writer.write(blobs.prepare(batch))
            blobs.finish()
            return _ref(ref.path, self.schema, writer.finish())

    def _open(self, sink: ObjectWriter, reader: FragmentReader) -> FileWriter[Any]:
        groups = RowGroups(borders=_borders(reader)) if self.version == V0_1 else None
        return create_data_file(sink, self.schema, self.version, groups=groups)

    def _rows(
        self, reader: FragmentReader, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Return all rows of the new file."""
        live = reader.live_rows()
        target = written_schema(self.schema)
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


def _ref(name: str, schema: Schema, made: WrittenFile) -> DataFileRef:
    ids = tuple(FieldId(number) for number in made.field_ids)
    columns, numbers = made.column_indices, made.version.to_numbers()
    written = WrittenColumns(schema, ids, columns)
    return DataFileRef(name, ids, columns, *numbers, made.size_bytes, written=written)


def adopt_file(
    snapshot: Snapshot, name: str, number: FragmentId, base_id: int | None = None
) -> Fragment:
    """Return the fragment that a data file of that name in ``data/`` makes; nothing is committed.

    Its columns become those of the same names in the table.  ``base_id``: the base path that the file lies under,
    if that is not the table's folder.  Raises NotFoundError if it is not
    there, SchemaMismatchError if it does not fit the table.
    """
    numbers = storage_version(snapshot.manifest).to_numbers()
    blank = DataFileRef(name, (), (), *numbers, None, base_id)
    try:
        return _adopt(snapshot, blank, number)
    except LanceError as error:
        raise error.located(Breadcrumb(blank.store_path)) from None


def _adopt(snapshot: Snapshot, blank: DataFileRef, number: FragmentId) -> Fragment:
    opened = snapshot.open_file(blank)
    file, version = opened.data, storage_version(snapshot.manifest)
    if file.version != version:
        message = f"a file of version {file.version} does not fit a table of version {version}"
        raise SchemaMismatchError(message)
    fitted = {top.name: top for top in fit_schema(snapshot.manifest.schema, file.schema).fields}
    pairs = [pair for top in file.schema.fields for pair in _pairs(top, fitted[top.name])]
    known = [(ours, theirs) for theirs, ours in pairs if theirs in file.column_of]
    if version == V0_1:
        known.sort()
    ids = tuple(ours for ours, _ in known)
    columns = tuple(int(file.column_of[theirs]) for _, theirs in known)
    numbers = version.to_numbers()
    if numbers[0]:
        ref = DataFileRef(
            blank.path, ids, columns, *numbers, opened.source.size_bytes, blank.base_id
        )
        return Fragment(number, (ref,), file.num_rows)
    ref = DataFileRef(blank.path, ids, (), *numbers, opened.source.size_bytes, blank.base_id)
    if tuple(FileColumns.of(ref).column_of.values()) != columns:
        message = "the fields of this file have other numbers than those of the table"
        raise SchemaMismatchError(message)
    return Fragment(number, (ref,), file.num_rows)


def _pairs(file: Field, table: Field) -> Iterator[tuple[FieldId, FieldId]]:
    """Yield the id in the file and the id in the table of each field, depth first."""
    yield file.id, table.id
    by_name = {child.name: child for child in table.children}
    for at, child in enumerate(file.children):
        is_struct = file.logical_type == "struct"
        yield from _pairs(child, by_name[child.name] if is_struct else table.children[at])


# --- values in the places of deleted rows ---------------------------------------------------------

Mask: TypeAlias = npt.NDArray[np.bool_]
ROWS_AT_ONCE: Final = 1 << 16
"""Rows of an output batch: a stretch of deleted rows may be long."""


def with_deleted_rows(
    batches: Iterable[pa.RecordBatch], live: LiveRows, *, may_be_null: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all live rows, in order, with rows in the places of deleted ones.

    All data files of a fragment have the same number of rows, deleted ones counted::

        live rows       a        b  c           physical rows 1, 2 and 5 are deleted
        new column      a  a  a  b  c  c

    What stands there is never shown: the value of the row before it, or NULL where a value could be long.
    Source: measured on pylance 14.0.2, which fills with some value, or with NULL in columns of text.

    ``may_be_null``: the file version keeps NULLs of all types.  There must be a live row.
    """
    if not len(live.deleted):
        yield from batches
        return
    is_live = np.ones(live.physical_rows, np.bool_)
    is_live[live.deleted] = False
    places = np.flatnonzero(is_live)
    done = start = 0
    for batch in batches:
        done += batch.num_rows
        end = int(places[done]) if done < len(places) else live.physical_rows
        if batch.num_rows:
            yield from _spread(batch, is_live[start:end], may_be_null=may_be_null)
            start = end


def _spread(batch: pa.RecordBatch, is_live: Mask, *, may_be_null: bool) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the batch where the mask is true, and others where it is not."""
    rows = len(is_live)
    if rows == batch.num_rows:
        yield batch
        return
    sources = np.maximum(np.cumsum(is_live, dtype=np.int64) - 1, 0)
    for start in range(0, rows, ROWS_AT_ONCE):
        piece = slice(start, start + ROWS_AT_ONCE)
        repeated = pa.array(sources[piece])
        blank = pa.array(sources[piece], mask=~is_live[piece])
        columns = [
            column.take(blank if may_be_null and _is_blank(field) else repeated)
            for field, column in zip(batch.schema, batch.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _is_blank(field: pa.Field[Any]) -> bool:
    """Return whether a column file has NULL in the places of deleted rows."""
    kind: Any = field.type
    while isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    is_long = (
        pa.types.is_large_list(kind)
        or pa.types.is_list(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )
    return bool(field.nullable and is_long)
