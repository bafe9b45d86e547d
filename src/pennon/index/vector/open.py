"""Opening a vector index of any release: which layout it has, its footer says.

=============  =======================================================================  ==================
footer         files                                                                    module
=============  =======================================================================  ==================
(0, 1)         ``index.idx``: partitions one after the other, then a message            `stages`
(0, 2)         ``index.idx``, ``auxiliary.idx``: data files of version 0.1              `row_groups`
(0, 3), (2, x) ``index.idx``, ``auxiliary.idx``: data files, with global buffers        this one
=============  =======================================================================  ==================

Source: reference index-vector, 2 and 3.1.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pennon.errors import FormatError, UnsupportedError
from pennon.index.files import IndexFile, IndexFiles
from pennon.index.vector.base import Floats, VectorIndex
from pennon.index.vector.codes import Quantizer
from pennon.index.vector.file_settings import (
    Settings,
    json_of,
    metric_of,
    parsed,
    settings,
    settings_of,
    text_of,
)
from pennon.index.vector.flat import Flat
from pennon.index.vector.hnsw import GraphPlan
from pennon.index.vector.ivf import IvfIndex
from pennon.index.vector.partition_reader import ColumnReader, GraphFile
from pennon.index.vector.pq import ProductQuantizer
from pennon.index.vector.row_groups import open_row_groups
from pennon.index.vector.rq import RabitQuantizer
from pennon.index.vector.sq import ScalarQuantizer
from pennon.index.vector.stages import is_staged, open_stages
from pennon.index.vector.wire import Partitions, Vectors, parse_partitions, parse_tensor
from pennon.schema.version import V0_1

_INDEX: Final = "lance:index"
_IVF: Final = "lance:ivf"
_GRAPHS: Final = "lance:hnsw"
_STORAGE: Final = "storage_metadata"
_KINDS: Final = {
    "flat": "FLAT",
    "__pq_code": "PQ",
    "__sq_code": "SQ",
    "_rabit_codes": "RQ",
}
"""By a column that only files of the kind have."""


def open_vector_index(files: IndexFiles) -> VectorIndex:
    """Open a segment of a vector index.

    Raises FormatError if its files are damaged, or do not fit one another, UnsupportedError if they are of a
    kind or a version that is not read, NotFoundError if there are none.
    """
    try:
        index = files.file("index.idx")
    except FormatError:
        source = files.object("index.idx")
        if source is None or not is_staged(source):
            raise
        return open_stages(files, source)
    if index.data.version == V0_1:
        return open_row_groups(files, index)
    return _open_buffers(files, index)


def _open_buffers(files: IndexFiles, index: IndexFile) -> IvfIndex:
    codes = files.file("auxiliary.idx")
    said = settings_of(index, _INDEX)
    model = parse_partitions(_buffer(index, text_of(index, _IVF)))
    partitions = parse_partitions(_buffer(codes, text_of(codes, _IVF)))
    centroids = model.centroids
    if centroids is None or len(partitions.lengths) != len(centroids):
        count = "no" if centroids is None else len(centroids)
        message = (
            f"{codes.source.path} has {len(partitions.lengths)} partitions and {count} centroids"
        )
        raise FormatError(message)
    metric = metric_of(text_of(codes, "distance_type"), codes.source.path)
    quantizer = _quantizer(codes, metric, centroids)
    _check_kind(said, quantizer.kind, metric)
    graph = _graphs(index, model) if _GRAPHS in index.data.schema.metadata else None
    quantizer.check(codes)
    reader = ColumnReader(files, codes, partitions, quantizer, graph)
    return IvfIndex(metric, centroids, quantizer, reader)


def _check_kind(said: Settings, kind: str, metric: str) -> None:
    """Raise FormatError if an index says that it is another one than its codes are."""
    name = str(said.values.get("type"))
    # 0.15 says no more than that there is a graph
    if name != "HNSW" and name.rpartition("_")[2] != kind:
        message = f"{said.path} is of an index of {name}, and its codes are {kind}"
        raise FormatError(message)
    if metric_of(said.values.get("distance_type"), said.path) != metric:
        message = f"{said.path} is of an index by {said.values['distance_type']}, and its codes are by {metric}"
        raise FormatError(message)


def _quantizer(codes: IndexFile, metric: str, centroids: Vectors) -> Quantizer:
    dimension = centroids.shape[1]
    kind = next((kind for name, kind in _KINDS.items() if name in codes.names), None)
    entries = json_of(codes, _STORAGE)
    if not isinstance(entries, list) or not entries or not isinstance(entries[0], str):
        message = f"{codes.source.path}: {_STORAGE} is {entries!r:.80}, and no list of texts"
        raise FormatError(message)
    path = codes.source.path
    said = settings(parsed(entries[0], path), path, _STORAGE)
    if kind == "FLAT":
        return Flat(codes, metric, dimension)
    if kind == "SQ":
        return ScalarQuantizer(said, metric, dimension)
    if kind == "PQ":
        tensor = said.bytes_of("codebook_tensor")
        if tensor is None:
            tensor = _buffer(codes, said.values.get("codebook_position"))
        return ProductQuantizer(
            parse_tensor(tensor),
            bits=said.number("nbits", "num_bits"),
            parts=said.number("num_sub_vectors"),
            metric=metric,
            centroids=centroids,
            is_transposed=said.values.get("transposed") is True,
        )
    if kind == "RQ":
        return RabitQuantizer(said, codes.names, metric, centroids, _rotation(codes, said))
    message = (
        f"{path} has the columns {', '.join(codes.names)}, which are codes of no kind that is read"
    )
    raise UnsupportedError(message)


def _rotation(codes: IndexFile, said: Settings) -> Floats | None:
    """Return the matrix that turns vectors; None if they are turned by signs."""
    kind = said.values.get("rotation_type", "matrix")
    if kind == "fast":
        return None
    if kind != "matrix":
        message = f"{said.path}: vectors turned by {kind!r} are not read"
        raise UnsupportedError(message)
    matrix = parse_tensor(_buffer(codes, said.values.get("rotate_mat_position")))
    return matrix.astype(np.float32)


def _graphs(index: IndexFile, model: Partitions) -> GraphFile:
    entries = json_of(index, _GRAPHS)
    count = len(model.lengths)
    if not isinstance(entries, list) or len(entries) != count:
        message = f"{index.source.path}: {_GRAPHS} is no list of the graphs of {count} partitions"
        raise FormatError(message)

    def plan(partition: int) -> GraphPlan:
        path = index.source.path
        said = settings(parsed(str(entries[partition]), path), path, _GRAPHS)
        return GraphPlan.parse(said, int(model.lengths[partition]))

    return GraphFile(index, model, plan)


def _buffer(file: IndexFile, number: Any) -> bytes:
    """Return the global buffer whose number is given, as a text or a number.  Raises FormatError."""
    text = str(number)
    if not text.isdecimal() or len(text) > 9:
        message = f"{file.source.path} has no global buffer {number!r}"
        raise FormatError(message)
    found: bytes = file.global_buffer(int(text)).to_pybytes()
    return found
