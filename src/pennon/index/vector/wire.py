"""The messages in files of vector indices: partitions, matrices, and the index of the first layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.message import DecodeError, Message

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import copied
from pennon.errors import FormatError, UnsupportedError
from pennon.index.vector.metric import Metric, metric_numbered
from pennon.proto import vector_index_pb2 as pb

M = TypeVar("M", bound=Message)
Vectors: TypeAlias = npt.NDArray[Any]
"""Vectors row by row, or one, of any element type."""

_TYPES: Final[dict[int, Any]] = {
    pb.Tensor.BFLOAT16: "<u2",
    pb.Tensor.FLOAT16: "<f2",
    pb.Tensor.FLOAT32: "<f4",
    pb.Tensor.FLOAT64: "<f8",
    pb.Tensor.UINT8: "u1",
}
_NUMBERS: Final = {np.dtype(kind): number for number, kind in _TYPES.items() if kind != "<u2"}
_MOST_ROWS: Final = 1 << 62
_CENTROIDS: Final = pb.Ivf.CENTROIDS_TENSOR_FIELD_NUMBER
_VALUES: Final = pb.Tensor.DATA_FIELD_NUMBER


@dataclass(frozen=True, slots=True, eq=False)
class Partitions:
    """The partitions of a file: ``offsets`` their first rows, or the positions of their bytes, ``lengths`` their rows.

    ``centroids`` is None in a file that does not have them.  ``loss`` is what training left, if it is said.
    """

    offsets: Int64Array
    lengths: Int64Array
    centroids: Vectors | None = None
    loss: float | None = None

    @classmethod
    def of(
        cls, lengths: Sequence[int], centroids: Vectors | None = None, loss: float | None = None
    ) -> Partitions:
        """Return partitions that lie one behind the other."""
        counts = np.array(lengths, np.int64)
        return cls(np.cumsum(counts) - counts, counts, centroids, loss)


@dataclass(frozen=True, slots=True, eq=False)
class Codebook:
    """The codebook in an index of the first layout."""

    bits: int
    parts: int
    dimension: int
    values: Vectors
    """Flat."""


@dataclass(frozen=True, slots=True, eq=False)
class OldIndex:
    """An index of the first layout."""

    dimension: int
    metric: Metric
    partitions: Partitions
    codebook: Codebook


def parse_partitions(data: Data) -> Partitions:
    """Return the partitions that a message describes.  Raises FormatError, UnsupportedError."""
    rest, centroids = cut_out(data, _CENTROIDS)
    message = _parsed(pb.Ivf(), rest, "partitions")
    return _partitions(message, None if centroids is None else parse_tensor(centroids))


def parse_tensor(data: Data) -> Vectors:
    """Return a matrix, in memory of its own.  Raises FormatError, UnsupportedError."""
    rest, values = cut_out(data, _VALUES)
    message = _parsed(pb.Tensor(), rest, "a matrix")
    return _matrix(message) if values is None else copied(_matrix(message, values))


def serialize_partitions(partitions: Partitions) -> bytes:
    """Return partitions as a message."""
    message = pb.Ivf(offsets=partitions.offsets.tolist(), lengths=partitions.lengths.tolist())
    if partitions.centroids is not None:
        message.centroids_tensor.CopyFrom(_tensor(partitions.centroids))
    if partitions.loss is not None:
        message.loss = partitions.loss
    return message.SerializeToString()


def serialize_tensor(values: Vectors) -> bytes:
    """Return a matrix as a message."""
    return _tensor(values).SerializeToString()


def parse_index(data: bytes) -> OldIndex:
    """Return an index of the first layout.  Raises FormatError, UnsupportedError."""
    index = _parsed(pb.Index(), data, "an index").vector_index
    stages = [stage.WhichOneof("stage") for stage in index.stages]
    if stages != ["ivf", "pq"]:
        message = f"an index of the stages {stages} is not read, only one of ivf and pq"
        raise UnsupportedError(message)
    metric = metric_numbered(index.metric_type)
    if metric is None:
        message = f"an index of metric {index.metric_type} is not known"
        raise FormatError(message)
    pq = index.stages[1].pq
    if pq.HasField("codebook_tensor"):
        values = _matrix(pq.codebook_tensor).reshape(-1)
    else:
        values = np.array(pq.codebook, np.float32)
    codebook = Codebook(pq.num_bits or 8, pq.num_sub_vectors, pq.dimension, values)
    partitions = _partitions(index.stages[0].ivf, dimension=index.dimension)
    return OldIndex(index.dimension, metric, partitions, codebook)


def _partitions(ivf: pb.Ivf, centroids: Vectors | None = None, *, dimension: int = 0) -> Partitions:
    """Return what a message says; ``centroids`` are those that were cut out of it."""
    lengths = np.array(ivf.lengths, np.int64)
    if centroids is None and ivf.HasField("centroids_tensor"):
        centroids = _matrix(ivf.centroids_tensor)
    elif centroids is None and ivf.centroids:
        count = (dimension and len(ivf.centroids) // dimension) or len(lengths)
        if not count or len(ivf.centroids) % count:
            message = (
                f"{len(ivf.centroids)} values of centroids do not divide into {count} partitions"
            )
            raise FormatError(message)
        centroids = np.array(ivf.centroids, np.float32).reshape(count, -1)
    if not len(lengths) and centroids is not None:
        lengths = np.zeros(len(centroids), np.int64)
    offsets = np.array(ivf.offsets, np.uint64)
    if not len(offsets):
        offsets = np.cumsum(lengths, dtype=np.uint64) - lengths.astype(np.uint64)
    if len(offsets) != len(lengths) or (len(offsets) and int(offsets.max()) > _MOST_ROWS):
        message = f"{len(lengths)} partitions begin at {len(offsets)} places, or too far away"
        raise FormatError(message)
    if centroids is not None and len(centroids) != len(lengths):
        message = f"{len(lengths)} partitions have {len(centroids)} centroids"
        raise FormatError(message)
    loss = ivf.loss if ivf.HasField("loss") else None
    return Partitions(offsets.astype(np.int64), lengths, centroids, loss)


def _tensor(values: Vectors) -> pb.Tensor:
    number: Any = _NUMBERS[values.dtype]
    data = np.ascontiguousarray(values).tobytes()
    return pb.Tensor(data_type=number, shape=values.shape, data=data)


def _matrix(tensor: pb.Tensor, data: memoryview | None = None) -> Vectors:
    """Return the matrix of a message; ``data`` are the values that were cut out of it."""
    held = tensor.data if data is None else data
    kind = _TYPES.get(tensor.data_type)
    if kind is None:
        message = f"a matrix of the type {tensor.data_type} is not read"
        raise UnsupportedError(message)
    if len(tensor.shape) != 2:
        message = f"a matrix has {len(tensor.shape)} dimensions instead of two"
        raise FormatError(message)
    rows, width = tensor.shape
    if not width or rows * width * np.dtype(kind).itemsize != len(held):
        message = f"a matrix of {rows} by {width} values has {len(held)} bytes"
        raise FormatError(message)
    values = np.frombuffer(held, kind).reshape(rows, width)
    if tensor.data_type == pb.Tensor.BFLOAT16:
        return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values


def _parsed(message: M, data: bytes, what: str) -> M:
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        text = f"{what} of an index: not a valid message: {error}"
        raise FormatError(text) from error
    return message


# --- long fields, found where they lie ------------------------------------------------------------
# To parse a message with one would copy it more than once.

Data: TypeAlias = bytes | memoryview | pa.Buffer
"""A message."""

_VARINT: Final = 0
_BYTES: Final = 2
_FIXED: Final = {1: 8, 5: 4}
"""How many bytes a value of such a wire type has."""
_MOST_BITS: Final = 63


def cut_out(data: Data, number: int) -> tuple[bytes, memoryview | None]:
    """Return a message without its field of bytes of a number, and that field; parts of one field are not cut out.

    What is damaged stays whole, for whoever parses the rest to say so.
    """
    whole: Any = memoryview(data).cast("B")
    found: list[tuple[int, int, int]] = []
    at, size_bytes = 0, len(whole)
    while 0 <= at < size_bytes:
        begin = at
        tag, at = _varint(whole, at)
        wire = tag & 7
        if wire in _FIXED:
            at += _FIXED[wire]
            continue
        value, at = _varint(whole, at)
        if wire == _BYTES:
            start, at = at, at + value
            if tag >> 3 == number:
                found.append((begin, start, at))
        elif wire != _VARINT:
            break
    if at != size_bytes or len(found) != 1:
        return bytes(whole), None
    begin, start, end = found[0]
    return bytes(whole[:begin]) + bytes(whole[end:]), whole[start:end]


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return a number, and where it ends: behind everything if it is damaged."""
    value, shift, size_bytes = 0, 0, len(data)
    while at < size_bytes and shift < _MOST_BITS:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, size_bytes + 1
