"""The two files of a new index of vectors.

``auxiliary.idx`` has the number of each row and its code, partition by partition; ``index.idx`` the centroids, and
the graphs of kinds that have some.

Source: reference index-vector, 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import map_in_order
from pennon.core.units import MIB
from pennon.file.container.writer import DataFileWriter
from pennon.index.new_files import NewFiles
from pennon.index.vector.build.hnsw_build import FIELDS, GrownGraph, grown
from pennon.index.vector.build.partitions import coder_of
from pennon.index.vector.file_settings import json_text
from pennon.index.vector.kmeans import POOL
from pennon.index.vector.layout import AUXILIARY, GRAPHS, INDEX, IVF, KIND, METRIC, ROWS, STORAGE
from pennon.index.vector.model import Coded, Coder, Model
from pennon.index.vector.rows import Matrix, as_array
from pennon.index.vector.wire import Partitions, serialize_partitions, serialize_tensor

_AHEAD_ROWS: Final = 1 << 18
"""Rows whose graphs are under way, unless a partition has more."""
_WRITTEN_BYTES: Final = 8 * MIB
"""So much of small partitions is written at once."""


Packed: TypeAlias = tuple[Sequence[int], pa.RecordBatch]
"""The lengths of some partitions, and rows as ``auxiliary.idx`` has them; both go on where the ones before ended."""


def write_index(
    model: Model, partitions: Iterable[Coded], new: NewFiles, *, with_graphs: bool = True
) -> None:
    """Write the partitions of an index, in order.

    Without graphs an index of a kind that has some is good for nothing but to be merged.
    """
    if model.settings.graph is None or not with_graphs:
        write_codes(model, _packed(model, partitions), new)
        write_no_graphs(model, new)
        return
    graphs = Graphs([], [])
    with new.file(INDEX, *FIELDS) as file:
        write_codes(model, _packed(model, _linked(model, partitions, file, graphs)), new)
        graphs.describe(file, model)


def write_no_graphs(model: Model, new: NewFiles) -> None:
    """Write ``index.idx`` of an index without graphs."""
    marker = pa.field("__flat_marker", pa.uint64(), nullable=False)
    with new.file(INDEX, marker) as file:
        _describe(file, model, [0] * model.partitions)
        file.add_schema_metadata({"lance:flat": json_text([""] * model.partitions)})


@dataclass(frozen=True, slots=True)
class Graphs:
    """The description of the graphs in ``index.idx``, and the number of rows of each there."""

    said: list[str]
    lengths: list[int]

    def describe(self, file: DataFileWriter, model: Model) -> None:
        """Put it into the file whose rows they are."""
        _describe(file, model, self.lengths)
        file.add_schema_metadata({GRAPHS: json_text(self.said)})


def _linked(
    model: Model, partitions: Iterable[Coded], file: DataFileWriter, graphs: Graphs
) -> Iterator[Coded]:
    """Yield the same partitions, whose graphs are written; these grow side by side."""

    def work(coded: Coded) -> tuple[Coded, GrownGraph]:
        return coded, grown(model, coded)

    for some in _together(partitions):
        for coded, graph in map_in_order(
            work, some, lambda coded: len(coded.rows), _AHEAD_ROWS, POOL
        ):
            if graph.batch.num_rows:
                file.write(graph.batch)
            graphs.said.append(graph.said)
            graphs.lengths.append(graph.batch.num_rows)
            yield coded


def _together(partitions: Iterable[Coded]) -> Iterator[list[Coded]]:
    """Yield partitions whose graphs grow side by side; behind a large one none is read ahead."""
    some: list[Coded] = []
    rows = 0
    for coded in partitions:
        some.append(coded)
        rows += len(coded.rows)
        if rows >= _AHEAD_ROWS:
            yield some
            some, rows = [], 0
    if some:
        yield some


def _describe(file: DataFileWriter, model: Model, lengths: list[int]) -> None:
    """Put into ``index.idx`` what it says of all kinds; ``lengths`` are the rows of each graph."""
    parts = Partitions.of(lengths, model.centroids, model.loss)
    number = file.add_global_buffer(serialize_partitions(parts))
    settings = model.settings
    kind = {"type": settings.kind, "distance_type": settings.metric.name}
    file.add_schema_metadata({KIND: json_text(kind), IVF: str(number)})


def _packed(model: Model, partitions: Iterable[Coded]) -> Iterator[Packed]:
    """Yield the partitions as they are stored, small ones together."""
    coder = coder_of(model)
    held: list[Coded] = []
    size = 0
    for coded in partitions:
        held.append(Coded(coded.rows, coder.pack(coded.columns)))
        size += sum(each.nbytes for each in coded.columns)
        if size > _WRITTEN_BYTES:
            yield [len(each.rows) for each in held], batch_of(held, coder)
            held, size = [], 0
    if held:
        yield [len(each.rows) for each in held], batch_of(held, coder)


def write_codes(model: Model, packed: Iterable[Packed], new: NewFiles) -> None:
    """Write ``auxiliary.idx``."""
    coder = coder_of(model)
    lengths: list[int] = []
    with new.file(AUXILIARY, *row_fields(coder)) as file:
        codebook = None
        if model.codebook is not None:
            codebook = file.add_global_buffer(serialize_tensor(as_stored(model.codebook)))
        for more, batch in packed:
            lengths += more
            file.write(batch)
        number = file.add_global_buffer(serialize_partitions(Partitions.of(lengths)))
        file.add_schema_metadata(
            {
                METRIC: model.settings.metric.name,
                IVF: str(number),
                STORAGE: json_text([json_text(coder.metadata(codebook))]),
            }
        )


def as_stored(codebook: Matrix) -> Matrix:
    """Return a codebook with as many numbers in a row as a vector has: no row is a code word."""
    found: Matrix = codebook.reshape(codebook.shape[1], -1)
    return found


def row_fields(coder: Coder) -> list[pa.Field[Any]]:
    """Return the columns of ``auxiliary.idx``."""
    return [pa.field(ROWS, pa.uint64()), *coder.fields]


def batch_of(parts: list[Coded], coder: Coder) -> pa.RecordBatch:
    """Return rows as a file has them."""
    whole = Coded.joined(parts)
    arrays = [pa.array(whole.rows)]
    for column, field in zip(whole.columns, coder.fields, strict=True):
        arrays.append(
            pa.array(column, field.type) if column.ndim == 1 else as_array(column, field.type)
        )
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(row_fields(coder)))
