"""Opening a vector index of any release: which layout it has, its footer says.

=============  =======================================================================  ==================
footer         files                                                                    module
=============  =======================================================================  ==================
(0, 1)         ``index.idx``: partitions one after the other, then a message            `stages`
(0, 2)         ``index.idx``, ``auxiliary.idx``: data files of version 0.1              `row_groups`
(0, 3), (2, x) ``index.idx``, ``auxiliary.idx``: data files, with global buffers        `layout`
=============  =======================================================================  ==================

Source: reference index-vector, 2 and 3.1.
"""

from __future__ import annotations

import numpy as np

from pennon.errors import FormatError, UnsupportedError
from pennon.index.files import IndexFile, IndexFiles
from pennon.index.vector.base import Floats
from pennon.index.vector.hnsw_graph import GraphPlan
from pennon.index.vector.layout import INDEX, Layout, read_layout
from pennon.index.vector.partition_reader import ColumnReader, GraphFile
from pennon.index.vector.quantizer import Quantizer
from pennon.index.vector.quantizers.flat import Flat
from pennon.index.vector.quantizers.pq import ProductQuantizer
from pennon.index.vector.quantizers.rq import RabitQuantizer
from pennon.index.vector.quantizers.sq import ScalarQuantizer
from pennon.index.vector.search.ivf import IvfIndex
from pennon.index.vector.search.legacy_ivf_pq import is_staged, open_stages
from pennon.index.vector.search.legacy_row_groups import open_row_groups
from pennon.schema.version import V0_1


def open_vector_index(files: IndexFiles) -> IvfIndex:
    """Open a segment of a vector index.

    Raises FormatError if its files are damaged, or do not fit one another, UnsupportedError if they are of a
    kind or a version that is not read, NotFoundError if there are none.
    """
    try:
        index = files.file(INDEX)
    except FormatError:
        source = files.object(INDEX)
        if source is None or not is_staged(source):
            raise
        return open_stages(files, source)
    if index.data.version == V0_1:
        return open_row_groups(files, index)
    return _open_buffers(files, index)


def _open_buffers(files: IndexFiles, index: IndexFile) -> IvfIndex:
    layout = read_layout(files, index)
    quantizer = _quantizer(layout)
    quantizer.check(layout.codes)
    graph = _graphs(layout) if layout.has_graphs else None
    reader = ColumnReader(files, layout.codes, layout.parts, quantizer, graph)
    return IvfIndex(layout.metric, layout.centroids, quantizer, reader)


def _quantizer(layout: Layout) -> Quantizer:
    said, metric, centroids = layout.said, layout.metric, layout.centroids
    if layout.quantizer == "FLAT":
        return Flat(layout.codes, metric, centroids.shape[1])
    if layout.quantizer == "SQ":
        return ScalarQuantizer(said, metric, centroids.shape[1])
    if layout.quantizer == "PQ":
        return ProductQuantizer(
            layout.codebook,
            bits=said.number("nbits", "num_bits"),
            parts=said.number("num_sub_vectors"),
            metric=metric,
            centroids=centroids,
            is_transposed=said.values.get("transposed") is True,
        )
    return RabitQuantizer(said, layout.codes.names, metric, centroids, _rotation(layout))


def _rotation(layout: Layout) -> Floats | None:
    """Return the matrix that turns vectors; None if they are turned by signs."""
    said = layout.said
    kind = said.values.get("rotation_type", "matrix")
    if kind == "fast":
        return None
    if kind != "matrix":
        message = f"{said.path}: vectors turned by {kind!r} are not read"
        raise UnsupportedError(message)
    return layout.matrix(said.values.get("rotate_mat_position")).astype(np.float32)


def _graphs(layout: Layout) -> GraphFile:
    said, lengths = layout.graph_settings(), layout.graphs.lengths

    def plan(partition: int) -> GraphPlan:
        return GraphPlan.parse(said[partition](), int(lengths[partition]))

    return GraphFile(layout.index, layout.graphs, plan)
