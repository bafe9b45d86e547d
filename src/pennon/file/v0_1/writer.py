"""Writing a data file of version 0.1, row group after row group.

Rows gather until there is a row group of ``max_rows_per_group``; whole groups are laid out and
written some megabytes at a time (`pennon.encoding.v0_1.parts`).  Where everything goes is known at
once, so the bytes are put together, and the statistics measured, on threads.  What stands behind them is drawn in
`pennon.file.v0_1.metadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.byte_ranges import Int64Array
from pennon.core.numpy_types import numpy_dtype
from pennon.core.units import MIB, FieldId
from pennon.encoding.v0_1.parts import Part, lay_out, write_parts
from pennon.errors import ArgumentError, Breadcrumb
from pennon.file.container.arrays import batch_columns
from pennon.file.container.losses import Losses
from pennon.file.container.write_limits import RowGroups
from pennon.file.container.writer_base import FileWriter, WrittenFile
from pennon.file.v0_1.end import PageTable, serialize_end
from pennon.file.v0_1.losses import count_losses
from pennon.file.v0_1.pages import Pages
from pennon.file.v0_1.statistics import Measured, Statistics
from pennon.io.store import ObjectWriter
from pennon.schema.check import check_writable
from pennon.schema.field import Field, Schema
from pennon.schema.version import V0_1

SLAB_BYTES: Final = 8 * MIB
"""About so much is laid out at once."""

_Slab: TypeAlias = tuple[pa.Buffer, list[Measured]]


class RowGroupWriter(FileWriter[_Slab]):
    """Writes record batches to one data file of version 0.1.

    `finish` warns (DataLossWarning) of what the file does not hold.

    Raises ArgumentError for groups of no rows, UnsupportedError for types that this version cannot
    hold.
    """

    def __init__(self, sink: ObjectWriter, schema: Schema, groups: RowGroups) -> None:
        super().__init__(sink, schema)
        with self._whole_or_nothing():
            _check_group(groups.max_rows)
            check_writable(schema, V0_1)
        self._group = groups.max_rows
        self._dictionaries = Dictionaries(groups.fixed, groups.dictionaries)
        self._losses = Losses()
        self._statistics = Statistics.of(schema)
        self._table = PageTable()
        self._borders = [np.zeros(1, np.int64)]
        self._waiting: list[pa.RecordBatch] = []
        self._position = 0

    def finish(self) -> WrittenFile:
        """Finish the file, and warn of what it does not hold."""
        is_new = self._written is None
        written = super().finish()
        if is_new:
            self._losses.warn()
        return written

    def _take(self, batch: pa.RecordBatch) -> None:
        for slab in self._slabs(batch):
            self._write_groups(slab)

    def _write_rest(self) -> None:
        if self._waiting:
            self._write_groups(self._take_waiting())
        self._write_slabs(self._ahead.rest())
        self._write_end()

    def _described(self, size_bytes: int) -> WrittenFile:
        ids = tuple(sorted(each.id for each in self._schema.walk()))
        return WrittenFile(self._num_rows, size_bytes, ids, (), V0_1)

    # Row groups

    def _slabs(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield whole row groups, some megabytes at a time; what is left waits."""
        columns = batch_columns(batch, self._schema.fields)
        batch = pa.RecordBatch.from_arrays(columns, names=self._schema.names)
        self._num_rows += batch.num_rows
        held = sum(each.num_rows for each in self._waiting)
        if held:
            missing = self._group - held
            self._waiting.append(batch.slice(0, missing))
            batch = batch.slice(missing)
            if held + self._waiting[-1].num_rows == self._group:
                yield self._take_waiting()
        row_bytes = max(batch.nbytes // max(batch.num_rows, 1), 1)
        step = max(SLAB_BYTES // row_bytes // self._group, 1) * self._group
        whole = batch.num_rows // self._group * self._group
        for start in range(0, whole, step):
            yield batch.slice(start, min(step, whole - start))
        if whole < batch.num_rows:
            self._waiting.append(batch.slice(whole))

    def _take_waiting(self) -> pa.RecordBatch:
        batches, self._waiting = self._waiting, []
        if len(batches) == 1:
            return batches[0]
        pairs = zip(self._schema.names, *(batch.columns for batch in batches), strict=True)
        columns = [_joined(name, parts) for name, *parts in pairs]
        return pa.RecordBatch.from_arrays(columns, names=self._schema.names)

    def _write_groups(self, batch: pa.RecordBatch) -> None:
        """Write rows as row groups; the last one may be smaller."""
        borders = np.append(np.arange(0, batch.num_rows, self._group), batch.num_rows)
        borders = borders.astype(np.int64)
        pages = Pages(self._dictionaries.indices, self._look)
        for top, array in zip(self._schema.fields, batch.columns, strict=True):
            pages.add(array, top, borders, top.name)
            count_losses(self._losses, top, top.name, array)
        positions = lay_out(pages.parts, self._position)
        self._position = int(positions[-1, -1] + pages.parts[-1].sizes[-1])
        self._table.add(pages.entries, positions, len(borders) - 1)
        self._borders.append(borders[1:] + self._borders[-1][-1])
        work = partial(_make, pages.parts, positions, self._statistics.taken())
        self._ahead.start(work, batch.nbytes)
        self._write_slabs(self._ahead.surplus())

    def _write_slabs(self, found: Iterable[_Slab]) -> None:
        """Write what was made on threads, in order."""
        for data, measured in found:
            self._sink.write(data)
            self._statistics.add(measured)

    def _look(self, of: Field, array: pa.Array, borders: Int64Array, in_list: bool) -> None:
        if not in_list:
            self._statistics.look(of, array, borders)

    def _write_end(self) -> None:
        borders = np.concatenate(self._borders)
        statistics = self._statistics.batch() if len(borders) > 1 else None
        values = self._dictionaries.values
        for part in serialize_end(
            self._sink.tell(), self._schema, borders, self._table, statistics, values
        ):
            self._sink.write(part)

    def add_schema_metadata(self, metadata: Mapping[str, str | bytes]) -> None:
        """Add entries to the schema's metadata, which is written at the end."""
        self._check_open()
        new = {k: v.encode() if isinstance(v, str) else v for k, v in metadata.items()}
        self._schema = replace(self._schema, metadata={**self._schema.metadata, **new})


class SameGroupsWriter(RowGroupWriter):
    """Writes record batches in row groups with given borders; see `RowGroupWriter`.

    All files of a fragment must have the same row groups, for readers go through them side by side.
    ``borders`` begin with 0, ascend, and end with the number of rows.
    """

    def __init__(
        self, sink: ObjectWriter, schema: Schema, groups: RowGroups, borders: Int64Array
    ) -> None:
        """Take the borders; where all groups but the last have one size, nothing is to be done."""
        sizes = np.diff(borders)
        longest = int(sizes.max(initial=1))
        super().__init__(sink, schema, replace(groups, max_rows=longest))
        self._ends = borders[1:] if np.any(sizes[:-1] < longest) else borders[-1:]

    def _take(self, batch: pa.RecordBatch) -> None:
        while batch.num_rows:
            at = np.searchsorted(self._ends, self._num_rows, side="right")
            end = int(self._ends[at]) if at < len(self._ends) else self._num_rows + batch.num_rows
            piece = batch.slice(0, end - self._num_rows)
            batch = batch.slice(piece.num_rows)
            super()._take(piece)
            if self._num_rows == end and self._waiting:
                self._write_groups(self._take_waiting())


def create_row_groups(
    sink: ObjectWriter, schema: Schema, groups: RowGroups | None = None
) -> RowGroupWriter:
    """Begin a file of version 0.1; see `pennon.file.open.create_data_file`."""
    groups = groups or RowGroups()
    if groups.borders is None:
        return RowGroupWriter(sink, schema, groups)
    return SameGroupsWriter(sink, schema, groups, groups.borders)


def _make(
    parts: Sequence[Part], positions: Int64Array, measurements: Sequence[Callable[[], Measured]]
) -> _Slab:
    """Return the bytes of some row groups and their statistics; runs on any thread."""
    return write_parts(parts, positions), [measure() for measure in measurements]


def _joined(name: str, parts: list[pa.Array]) -> pa.Array:
    """Return the rows of a row group as one array.  Raises ArgumentError if Arrow has none for them."""
    try:
        return pa.concat_arrays(parts)
    except pa.ArrowInvalid as error:  # indices of dictionaries, or offsets, do not reach
        message = f"column {name!r}: the rows of a row group do not fit in one array: {error}"
        raise ArgumentError(message) from error


def _check_group(rows: int) -> None:
    if rows < 1:
        message = f"max_rows_per_group must be at least 1, got {rows}"
        raise ArgumentError(message)


# --- dictionaries ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Dictionaries:
    """The values of each dictionary so far, by field id: one for all rows of the file.

    An Arrow column may come with another dictionary in each batch.  The first one is taken as it is;
    what later ones have beyond it is put behind it, and their indices are changed.  A file for a
    table that has a dictionary already must do with that one (``fixed``), for readers know no other.
    """

    fixed: Mapping[FieldId, pa.Array]
    values: dict[FieldId, pa.Array]

    def indices(self, of: Field, array: pa.DictionaryArray, path: str) -> pa.Array:
        """Return the indices of an array in the file's dictionary, which learns its values.

        Raises ArgumentError if the dictionary is fixed and lacks a value, or there are more values
        than the type of the indices can count.
        """
        known = self.values.get(of.id)
        if known is None:
            known = self.values[of.id] = self.fixed.get(of.id, array.dictionary)
        if array.dictionary.equals(known):
            return array.indices
        places = pc.index_in(array.dictionary, known)
        if places.null_count:
            known = self._learn(of, array, known, places, path)
            places = pc.index_in(array.dictionary, known)
        self._check_count(len(known), array.type.index_type, path)
        return places.cast(array.type.index_type).take(array.indices)

    def _learn(
        self, of: Field, array: pa.DictionaryArray, known: pa.Array, places: pa.Array, path: str
    ) -> pa.Array:
        new = array.dictionary.filter(places.is_null())
        if of.id in self.fixed:
            message = (
                f"column {path!r}: the value {new[0].as_py()!r} is not in the dictionary of the "
                "table, and at file version 0.1 a table has one dictionary for all its rows; "
                "write plain values, or a table of a newer version"
            )
            raise ArgumentError(message, where=Breadcrumb(column=path))
        self.values[of.id] = grown = pa.concat_arrays([known, new.unique()])
        return grown

    def _check_count(self, count: int, index_type: pa.DataType, path: str) -> None:
        most = np.iinfo(numpy_dtype(index_type)).max
        if count - 1 > most:
            message = (
                f"column {path!r}: {count} values of a dictionary, {index_type} counts to {most}"
            )
            raise ArgumentError(message, where=Breadcrumb(column=path))
