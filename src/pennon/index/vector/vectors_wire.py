"""The messages that a new index of vectors is written with, and those of an old one that goes on as a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError

from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError
from pennon.index.vector.rows import Matrix
from pennon.index.vector.settings import Graph, VectorSettings
from pennon.proto import vector_details_pb2, vector_index_pb2

_TYPES: Final = {1: np.float16, 2: np.float32, 3: np.float64, 4: np.uint8}
_NUMBERS: Final = {np.dtype(kind): number for number, kind in _TYPES.items()}
_METRICS: Final = ("l2", "cosine", "dot", "hamming")
_HINTS: Final = (
    ("lance.ivf.sample_rate", "lance.pq.sample_rate", "lance.sq.sample_rate"),
    ("lance.ivf.max_iters", "lance.pq.max_iters"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Partitions:
    """Where the rows of each partition begin, and how many they are; ``centroids`` if these are said."""

    offsets: Sequence[int]
    lengths: Sequence[int]
    centroids: Matrix | None = None
    loss: float | None = None


def serialize_tensor(values: Matrix) -> bytes:
    """Return a matrix as a message."""
    data: bytes = _tensor(values).SerializeToString()
    return data


def parse_tensor(data: bytes) -> Matrix:
    """Return the matrix of a message.  Raises FormatError."""
    message = vector_index_pb2.Tensor()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        text = f"a tensor of an index is no message: {error}"
        raise FormatError(text) from None
    return _matrix(message)


def serialize_partitions(parts: Partitions) -> bytes:
    """Return the partitions as a message."""
    message = vector_index_pb2.Ivf(offsets=parts.offsets, lengths=parts.lengths)
    if parts.centroids is not None:
        message.centroids_tensor.CopyFrom(_tensor(parts.centroids))
    if parts.loss is not None:
        message.loss = parts.loss
    return message.SerializeToString()


def parse_partitions(data: bytes) -> Partitions:
    """Return the partitions of a message.  Raises FormatError."""
    message = vector_index_pb2.Ivf()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        text = f"the partitions of an index are no message: {error}"
        raise FormatError(text) from None
    lengths = list(message.lengths)
    offsets = list(message.offsets) or [0, *np.cumsum(lengths, dtype=np.int64).tolist()][:-1]
    centroids = _matrix(message.centroids_tensor) if message.HasField("centroids_tensor") else None
    loss = message.loss if message.HasField("loss") else None
    return Partitions(offsets, lengths, centroids, loss)


def vector_details(settings: VectorSettings) -> bytes:
    """Return what the entry of an index says of it."""
    message = vector_details_pb2.VectorIndexDetails()
    message.metric = vector_details_pb2.VectorIndexDetails.Metric.Value(settings.metric.upper())
    message.target_partition_size = settings.partition_rows or 0
    if settings.graph is not None:
        graph = settings.graph
        message.hnsw.m, message.hnsw.max_level = graph.m, graph.max_level
        message.hnsw.ef_construction = graph.ef_construction
    if settings.quantizer == "PQ":
        message.pq.num_bits, message.pq.num_sub_vectors = settings.bits, settings.sub_vectors
    elif settings.quantizer == "SQ":
        message.sq.num_bits = 8
    elif settings.quantizer == "RQ":
        message.rq.num_bits = settings.bits
    else:
        message.flat.SetInParent()
    rates, iterations = _HINTS
    message.hints.update(dict.fromkeys(rates, str(settings.sample_rate)))
    message.hints.update(dict.fromkeys(iterations, str(settings.max_iters)))
    return message.SerializeToString(deterministic=True)


def settings_of(details: bytes) -> VectorSettings | None:
    """Return how an index was made, as its entry says; None where that says nothing."""
    message = vector_details_pb2.VectorIndexDetails()
    try:
        message.ParseFromString(details)
    except DecodeError:
        return None
    found = [
        name
        for name, is_there in (
            ("PQ", message.HasField("pq")),
            ("SQ", message.HasField("sq")),
            ("RQ", message.HasField("rq")),
            ("FLAT", message.HasField("flat")),
        )
        if is_there
    ]
    if len(found) != 1 or message.metric >= len(_METRICS):
        return None
    graph = message.hnsw if message.HasField("hnsw") else None
    bits = {"PQ": message.pq.num_bits, "RQ": message.rq.num_bits}.get(found[0]) or 8
    return VectorSettings(
        f"IVF_{'' if graph is None else 'HNSW_'}{found[0]}",
        _METRICS[message.metric],
        partition_rows=message.target_partition_size or None,
        sub_vectors=message.pq.num_sub_vectors,
        bits=bits,
        sample_rate=_hint(message.hints, "lance.ivf.sample_rate", 256),
        max_iters=_hint(message.hints, "lance.ivf.max_iters", 50),
        graph=graph and Graph(graph.m, graph.ef_construction, graph.max_level),
    )


def _hint(hints: Any, name: str, default: int) -> int:
    text = hints.get(name, "")
    return int(text) if text.isdigit() and 0 < int(text) < 1 << 31 else default


def _tensor(values: Matrix) -> Any:
    data = np.ascontiguousarray(values).tobytes()
    number: Any = _NUMBERS[values.dtype]
    return vector_index_pb2.Tensor(data_type=number, shape=values.shape, data=data)


def _matrix(message: Any) -> Matrix:
    kind = _TYPES.get(message.data_type)
    shape = tuple(message.shape)
    if kind is None or len(shape) != 2 or 0 in shape:
        text = f"a tensor of an index is of type {message.data_type} and shape {list(shape)}"
        raise FormatError(text)
    if len(message.data) != shape[0] * shape[1] * np.dtype(kind).itemsize:
        text = f"a tensor of shape {list(shape)} has {len(message.data)} bytes"
        raise FormatError(text)
    return np.frombuffer(message.data, kind).reshape(shape)
