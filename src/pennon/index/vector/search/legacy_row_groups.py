"""HNSW indices of releases 0.9 to 0.15: data files of version 0.1, a row group for each partition.

::

    index.idx        __vector_id, __neighbors        lance:index, lance:ivf, lance:ivf:partition
    auxiliary.idx    _rowid, __sq_code               lance:index, lance:ivf, lance:sq
                     _rowid, __pq_code (by rows)     lance:index, lance:ivf, lance:pq

What newer files have as global buffers stands between the pages: ``pb_position`` and ``codebook_position`` are where
its length begins.  Source: reference index-vector, 3.3.
"""

from __future__ import annotations

import struct
from typing import Final

from pennon.core.byte_ranges import ByteRange
from pennon.errors import FormatError, UnsupportedError
from pennon.index.files import IndexFile, IndexFiles
from pennon.index.vector.file_settings import json_of, metric_of, settings, settings_of
from pennon.index.vector.hnsw_graph import GraphPlan
from pennon.index.vector.layout import check_rows
from pennon.index.vector.metric import Metric
from pennon.index.vector.partition_reader import ColumnReader, GraphFile
from pennon.index.vector.quantizer import Quantizer
from pennon.index.vector.quantizers.pq import ProductQuantizer
from pennon.index.vector.quantizers.sq import ScalarQuantizer
from pennon.index.vector.search.ivf import IvfIndex
from pennon.index.vector.wire import Partitions, Vectors, parse_partitions, parse_tensor
from pennon.io.store import ObjectReader

_GRAPHS: Final = "lance:ivf:partition"


def open_row_groups(files: IndexFiles, index: IndexFile) -> IvfIndex:
    """Open an index.  Raises FormatError if it is damaged, UnsupportedError for other kinds."""
    codes = files.file("auxiliary.idx")
    model, partitions = _partitions(index), _partitions(codes)
    centroids = model.centroids
    if centroids is None or len(centroids) != len(partitions.lengths):
        message = f"{codes.source.path} has {len(partitions.lengths)} partitions, {index.source.path} others"
        raise FormatError(message)
    said = settings_of(codes, "lance:index")
    metric = metric_of(said.values.get("distance_type"), said.path)
    quantizer = _quantizer(codes, str(said.values.get("type")), metric, centroids)
    quantizer.check(codes)
    check_rows(codes, partitions)
    reader = ColumnReader(files, codes, partitions, quantizer, _graphs(index, model))
    return IvfIndex(metric, centroids, quantizer, reader)


def _quantizer(codes: IndexFile, kind: str, metric: Metric, centroids: Vectors) -> Quantizer:
    if kind == "SQ":
        return ScalarQuantizer(settings_of(codes, "lance:sq"), metric, centroids.shape[1])
    if kind != "PQ":
        message = f"{codes.source.path} has codes of {kind}, which are not read"
        raise UnsupportedError(message)
    said = settings_of(codes, "lance:pq")
    tensor = said.bytes_of("codebook_tensor")
    if tensor is None:
        tensor = read_message(codes.source, said.number("codebook_position"))
    return ProductQuantizer(
        parse_tensor(tensor).reshape(-1),
        bits=said.number("num_bits", "nbits"),
        parts=said.number("num_sub_vectors"),
        metric=metric,
        centroids=centroids,
        is_transposed=False,
    )


def _partitions(file: IndexFile) -> Partitions:
    position = settings_of(file, "lance:ivf").number("pb_position")
    return parse_partitions(read_message(file.source, position))


def _graphs(index: IndexFile, model: Partitions) -> GraphFile:
    entries = json_of(index, _GRAPHS)
    if not isinstance(entries, list) or len(entries) != len(model.lengths):
        message = f"{index.source.path}: {_GRAPHS} must list one graph for each of {len(model.lengths)} partitions"
        raise FormatError(message)

    def plan(partition: int) -> GraphPlan:
        said = settings(entries[partition], index.source.path, _GRAPHS)
        return GraphPlan.parse(said, int(model.lengths[partition]))

    return GraphFile(index, model, plan)


def read_message(source: ObjectReader, position: int) -> bytes:
    """Return a message behind its length.  Raises FormatError if it leaves the file."""
    (head,) = source.read([ByteRange(position, 4)])
    (size,) = struct.unpack("<I", head.to_pybytes())
    (found,) = source.read([ByteRange(position + 4, size)])
    data: bytes = found.to_pybytes()
    return data
