"""One index of parts of it that were written apart, each with a run of the partitions.

Rows go over as they are stored: no code is looked at, and no graph grows again.

::

    part 0    partitions 0 1 2        auxiliary.idx  rows of 0 1 2        index.idx  graphs of 0 1 2
    part 1    partitions 3 4          auxiliary.idx  rows of 3 4          index.idx  graphs of 3 4
    index     partitions 0 1 2 3 4    the rows of part 0, then those of part 1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from pennon.core.units import MIB
from pennon.encoding.rows import Rows
from pennon.errors import FormatError
from pennon.index.files import IndexFile, IndexFiles
from pennon.index.new_files import NewFiles
from pennon.index.vector.build.hnsw_build import FIELDS
from pennon.index.vector.build.new_index import (
    Graphs,
    Packed,
    row_fields,
    write_codes,
    write_no_graphs,
)
from pennon.index.vector.build.opened_index import StoredIndex, open_stored
from pennon.index.vector.build.partitions import coder_of
from pennon.index.vector.layout import INDEX
from pennon.index.vector.model import Model
from pennon.schema.width import row_bytes

_COPIED_BYTES: Final = 8 * MIB
"""So much of a file is held at once."""
_NEIGHBOUR_BYTES: Final = 8


def join_parts(parts: Mapping[int, IndexFiles], model: Model, new: NewFiles) -> None:
    """Write the index that parts make together, each known by the number of its first partition.

    Partitions that no part has are empty.  Raises FormatError for parts that have a partition in common.
    """
    opened = [(first, open_stored(parts[first])) for first in sorted(parts)]
    write_codes(model, _rows(opened, model), new)
    if model.settings.graph is None:
        write_no_graphs(model, new)
        return
    graphs = Graphs([], [])
    row = row_bytes(pa.schema(FIELDS)) + _NEIGHBOUR_BYTES * 2 * model.settings.graph.m
    with new.file(INDEX, *FIELDS) as file:
        for first, part in opened:
            for batch in _batches(part.layout.index, FIELDS, row):
                file.write(batch)
            missing = first - len(graphs.said)
            graphs.said.extend([*[""] * missing, *part.layout.graph_texts()])
            graphs.lengths.extend([*[0] * missing, *part.layout.graphs.lengths.tolist()])
        missing = model.partitions - len(graphs.said)
        graphs.said.extend([""] * missing)
        graphs.lengths.extend([0] * missing)
        graphs.describe(file, model)


def _rows(opened: Sequence[tuple[int, StoredIndex]], model: Model) -> Iterator[Packed]:
    due = 0
    for first, part in opened:
        if not due <= first <= model.partitions - part.model.partitions:
            message = f"{part.layout.codes.source.path} has partitions from {first} on, as another part has"
            raise FormatError(message)
        lengths = [*[0] * (first - due), *part.parts.lengths.tolist()]
        fields = row_fields(part.coder)
        for batch in _batches(part.layout.codes, fields, row_bytes(pa.schema(fields))):
            yield lengths, batch
            lengths = []
        due = first + part.model.partitions
    fields = row_fields(coder_of(model))
    yield [0] * (model.partitions - due), pa.RecordBatch.from_pylist([], pa.schema(fields))


def _batches(
    file: IndexFile, fields: Sequence[pa.Field[Any]], row: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file unchanged, in batches of about the given number of bytes."""
    schema = pa.schema(fields)
    names = [each.name for each in fields]
    step = max(_COPIED_BYTES // row, 1)
    for start in range(0, file.rows, step):
        arrays = file.read(names, Rows.between(start, min(start + step, file.rows)))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
