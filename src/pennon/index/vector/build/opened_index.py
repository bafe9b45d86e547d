"""A written index of vectors, read to be merged with others, for rows that were moved, or to be described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError, UnsupportedError
from pennon.index.files import IndexFiles, whole_numbers
from pennon.index.vector.build.partitions import coder_of
from pennon.index.vector.code_columns import values_of
from pennon.index.vector.layout import ROWS, Layout, read_layout
from pennon.index.vector.model import Coded, Coder, Model
from pennon.index.vector.partition_reader import pieces
from pennon.index.vector.quantizers.pq import check_words
from pennon.index.vector.quantizers.sq import bounds_of
from pennon.index.vector.settings import KINDS, Graph, VectorSettings
from pennon.index.vector.wire import Partitions

_MOST_BITS: Final = 9


@dataclass(frozen=True, slots=True, eq=False)
class StoredIndex:
    """An open index: its model, and how many rows each partition has."""

    model: Model
    layout: Layout
    coder: Coder

    @property
    def parts(self) -> Partitions:
        """Return where the rows of each partition are."""
        return self.layout.parts

    def read(self, first: int, end: int) -> list[Coded]:
        """Return the rows of partitions ``first`` to ``end``, each with its codes row by row."""
        names = [ROWS, *(field.name for field in self.coder.fields)]
        found = pieces(self.layout.codes, names, self.parts, np.arange(first, end))
        return [
            Coded(whole.rows, self.coder.unpack(whole.columns)) for whole in map(coded_of, found)
        ]

    def first_graph(self) -> dict[str, Any]:
        """Return what the index says of the graph of the first partition that has one.  Raises FormatError."""
        said = self.layout.graph_settings()
        filled = np.flatnonzero(self.layout.graphs.lengths)
        return dict(said[int(filled[0])]().values) if len(filled) else {}


def coded_of(arrays: Sequence[pa.Array[Any]]) -> Coded:
    """Return rows of a file, or of a batch like it.  Raises FormatError if there are NULLs."""
    numbers, *columns = arrays
    rows = whole_numbers(numbers, "row numbers of an index")
    return Coded(rows, tuple(values_of(each) for each in columns))


def open_stored(files: IndexFiles) -> StoredIndex:
    """Open an index.  Raises FormatError, NotFoundError, and UnsupportedError for older layouts."""
    layout = read_layout(files)
    model = _model(layout)
    coder = coder_of(model)
    codes = layout.codes
    for field in coder.fields:
        if codes.type_of(field.name) != field.type:
            found = codes.type_of(field.name)
            message = f"{codes.source.path} has codes of {found}, and its model is of {field.type}"
            raise FormatError(message)
    return StoredIndex(model, layout, coder)


def _model(layout: Layout) -> Model:
    kind, metric, said = layout.kind, layout.metric, layout.said
    if kind not in KINDS:
        message = f"{layout.index.source.path} is of kind {kind}, which Pennon makes anew"
        raise UnsupportedError(message)
    graph = Graph() if layout.has_graphs else None
    centroids, loss = layout.centroids, layout.graphs.loss
    dim = int(centroids.shape[1])
    if layout.quantizer == "PQ":
        bits, parts = said.number("nbits", "num_bits"), said.number("num_sub_vectors")
        codebook = layout.codebook
        check_words(codebook, bits, parts, dim, metric)
        is_plain = said.values.get("transposed") is not True
        settings = VectorSettings(
            kind, metric, sub_vectors=parts, bits=bits, graph=graph, is_plain=is_plain
        )
        return Model(
            settings, centroids, codebook.reshape(parts, 1 << bits, dim // parts), loss=loss
        )
    if layout.quantizer == "RQ":
        return _rabit_model(layout)
    settings = VectorSettings(kind, metric, graph=graph)
    bounds = bounds_of(said, metric, dim) if layout.quantizer == "SQ" else None
    return Model(settings, centroids, bounds=bounds, loss=loss)


def _rabit_model(layout: Layout) -> Model:
    """Return the model of RQ; raises UnsupportedError for what releases before 8 wrote."""
    said, dim = layout.said, int(layout.centroids.shape[1])
    signs, bits = said.bytes_of("fast_rotation_signs") or b"", said.number("num_bits", default=0)
    is_new = (
        said.values.get("query_estimator") == "raw_query"
        and said.values.get("rotation_type") == "fast"
    )
    if not (is_new and 1 <= bits <= _MOST_BITS and dim % 8 == 0 and len(signs) == dim // 8 * 4):
        message = f"{said.path} has codes of RQ as old releases have them; Pennon makes them anew"
        raise UnsupportedError(message)
    is_plain = said.values.get("packed") is not True
    settings = VectorSettings(layout.kind, layout.metric, bits=bits, is_plain=is_plain)
    return Model(settings, layout.centroids, signs=signs, loss=layout.graphs.loss)
