"""Arguments of vector indices, checked; the names are pylance's.

Source: reference index-vector, 7.1.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types as t
from pyarrow.fs import FileSystem

from pennon.core.near_names import did_you_mean
from pennon.core.numpy_types import numpy_dtype
from pennon.errors import ArgumentError, ColumnTypeError, NoSuchIndexError, UnsupportedError
from pennon.index.vector.metric import L2, Metric, metric_named
from pennon.index.vector.rows import Matrix, is_many, is_vector, vector_type
from pennon.index.vector.settings import KINDS, Graph, VectorSettings

_NUMBERS: Final = frozenset(
    {
        "num_partitions",
        "target_partition_size",
        "num_sub_vectors",
        "num_bits",
        "sample_rate",
        "max_iters",
        "max_iterations",
        "m",
        "ef_construction",
        "max_level",
        "seed",
    }
)
_WITHOUT_EFFECT: Final = frozenset(
    {
        "shuffle_partition_batches",
        "shuffle_partition_concurrency",
        "streaming_sample_rate",
        "streaming_coreset_rate",
        "streaming_refine_passes",
        "precomputed_partition_dataset",
        "kmeans_redos",
        "prefetch_distance",
        "filter_nan",
    }
)
"""Ways to the same index; pylance has them."""
_KNOWN: Final = (
    _NUMBERS
    | _WITHOUT_EFFECT
    | {
        "metric",
        "ivf_centroids",
        "ivf_centroids_file",
        "pq_codebook",
        "accelerator",
        "index_cache_size",
        "index_file_version",
        "skip_transpose",
        "rotation_type",
    }
)
_FLOATS: Final = (np.float16, np.float32, np.float64)
_PQ_BITS: Final = (4, 8)
_RQ_BITS: Final = 9
_LEAST_NEIGHBOURS: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Models that the caller has trained already."""

    centroids: Matrix | None = None
    codebook: Matrix | None = None


@dataclass(frozen=True, slots=True, eq=False)
class VectorArguments:
    """Training arguments of a vector index, and the models that the caller gives."""

    settings: VectorSettings
    given: Given


def given_arguments(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for an index of vectors among all of a call, without those that were left out."""
    names = _KNOWN - {"filter_nan"}
    given = {name: said[name] for name in said if name in names and said[name] is not None}
    if not given.get("skip_transpose"):
        given.pop("skip_transpose", None)
    return given


def vector_kind(name: str) -> str:
    """Return the name of a kind of vectors, in upper case.  Raises UnsupportedError for any other."""
    if name.upper() not in KINDS:
        message = f"Only {list(KINDS)} index types supported. Got {name.upper()}"
        raise UnsupportedError(message)
    return name.upper()


def vector_arguments(
    column: str, kind: pa.DataType, index_type: str, arguments: Mapping[str, Any]
) -> VectorArguments:
    """Check the arguments of an index of a column of a type.

    Raises ColumnTypeError for columns that are none of vectors, ArgumentError, TypeError.
    """
    vector = _vector(column, kind, arguments.get("num_sub_vectors"))
    metric = _metric(arguments.get("metric"))
    name = vector_kind(index_type)
    _refuse(arguments)
    numbers = {key: _number(key, arguments[key]) for key in _NUMBERS & arguments.keys()}
    centroids = _centroids(arguments, vector, numbers.get("num_partitions"))
    settings = _settings(name, metric, numbers, is_plain=bool(arguments.get("skip_transpose")))
    _check_fit(column, settings, kind)
    codebook = None
    if settings.quantizer == "PQ":
        codebook = _codebook(arguments, settings, vector, has_centroids=centroids is not None)
    elif arguments.get("pq_codebook") is not None and centroids is None:
        _need_centroids()
    return VectorArguments(settings, Given(centroids, codebook))


def _vector(column: str, kind: pa.DataType, sub_vectors: Any) -> Any:
    """Return the type of one vector of the column."""
    if not is_vector(kind):
        message = f"Vector column {column} must be FixedSizeListArray 1-dimensional FixedShapeTensorArray, got {kind}"
        raise ColumnTypeError(message)
    vector = vector_type(kind)
    if isinstance(sub_vectors, int) and sub_vectors > 0 and vector.list_size % sub_vectors:
        message = (
            f"dimension ({vector.list_size}) must be divisible by num_sub_vectors ({sub_vectors})"
        )
        raise ArgumentError(message)
    element = vector.value_type
    if not (t.is_floating(element) or t.is_uint8(element)):
        message = f"Vector column {column} must have floating value type, got {element}"
        raise ColumnTypeError(message)
    return vector


def _metric(metric: Any) -> Metric:
    found = L2 if metric is None else metric_named(metric)
    if found is None:
        message = f"Metric {metric} not supported."
        raise ArgumentError(message)
    return found


def _refuse(arguments: Mapping[str, Any]) -> None:
    """Say what is not heeded, and refuse what would make another index than asked for."""
    if arguments.get("accelerator") is not None:
        message = "accelerator: Pennon trains on the CPU; leave it out"
        raise UnsupportedError(message)
    if arguments.get("index_cache_size") is not None:
        message = "index_cache_size of create_index is ignored, by pylance too"
        warnings.warn(message, DeprecationWarning, stacklevel=6)
    version = arguments.get("index_file_version")
    if version is not None and str(version).upper() != "V3":
        message = (
            f"index_file_version {version!r}: Pennon writes V3, which pylance reads since 0.15"
        )
        error = UnsupportedError if str(version).lower() == "legacy" else ArgumentError
        raise error(message)
    unknown = sorted(arguments.keys() - _KNOWN)
    for name in unknown:
        hint = did_you_mean(name, _KNOWN)
        if hint:
            message = f"create_index() got an unexpected keyword argument {name!r}{hint}"
            raise TypeError(message)
    if unknown:
        message = f"create_index has no {', '.join(unknown)}, and ignores it"
        warnings.warn(message, UserWarning, stacklevel=6)


def _number(key: str, value: Any) -> int:
    if isinstance(value, float) and key == "num_partitions":
        warnings.warn("num_partitions is float, converting to int", UserWarning, stacklevel=7)
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        message = f"{key} must be int, got {type(value)}"
        raise TypeError(message)
    least = 0 if key == "seed" else 1
    if not least <= value < 1 << 31:
        message = f"{key} must be positive, got {value}"
        raise ArgumentError(message)
    return int(value)


def _settings(
    name: str, metric: Metric, numbers: Mapping[str, int], *, is_plain: bool
) -> VectorSettings:
    quantizer = name.rpartition("_")[2]
    bits = numbers.get("num_bits", 5 if quantizer == "RQ" else 8)
    sub_vectors = numbers.get("num_sub_vectors", 0)
    if quantizer == "PQ":
        if not sub_vectors:
            message = "num_partitions and num_sub_vectors are required for IVF_PQ"
            raise ArgumentError(message)
        if bits not in _PQ_BITS:
            message = f"ProductQuantization: num_bits {bits} not supported"
            raise NoSuchIndexError(message)
        if bits == _PQ_BITS[0] and sub_vectors % 2:
            message = (
                f"PQ: num_sub_vectors must be divisible by 2 for num_bits=4, but got {sub_vectors}"
            )
            raise NoSuchIndexError(message)
    elif quantizer == "RQ" and bits > _RQ_BITS:
        message = f"IVF_RQ num_bits must be in 1..=9, got {bits}"
        raise ArgumentError(message)
    elif quantizer in {"SQ", "FLAT"}:
        bits = 8
    return VectorSettings(
        name,
        metric,
        numbers.get("num_partitions"),
        numbers.get("target_partition_size"),
        sub_vectors if quantizer == "PQ" else 0,
        bits,
        numbers.get("sample_rate", 256),
        numbers.get("max_iters", numbers.get("max_iterations", 50)),
        _graph(name, numbers),
        is_plain,
        numbers.get("seed", 42),
    )


def _graph(name: str, numbers: Mapping[str, int]) -> Graph | None:
    if "HNSW" not in name:
        return None
    graph = Graph(
        numbers.get("m", 20), numbers.get("ef_construction", 150), numbers.get("max_level", 7)
    )
    if graph.m < _LEAST_NEIGHBOURS:
        message = f"m must be at least 4 to avoid severely fragmented graphs, got {graph.m}"
        raise ArgumentError(message)
    return graph


def _check_fit(column: str, settings: VectorSettings, kind: pa.DataType) -> None:
    """Raise if vectors of a type have no such index.  Source: reference index-vector, 4.3."""
    vector = vector_type(kind)
    is_bits = t.is_uint8(vector.value_type)
    if is_bits and settings.quantizer != "FLAT":
        message = f"{settings.quantizer} builder: unsupported data type: UInt8; column {column} has IVF_FLAT and IVF_HNSW_FLAT"
        raise ArgumentError(message)
    if is_bits != settings.metric.is_of_bits:
        element = "UInt8" if is_bits else str(vector.value_type).replace("halffloat", "float16")
        message = f"Unsupported training sample type {element} with metric {settings.metric}: column {column}"
        raise ArgumentError(message)
    if is_many(kind) and not settings.metric.normalises:
        message = f"multivector type supports only cosine distance, and column {column} is one: got {settings.metric}"
        raise NoSuchIndexError(message)
    if settings.quantizer == "RQ" and vector.list_size % 8:
        message = "vector dimension must be divisible by 8 for IVF_RQ"
        raise ArgumentError(message)


def _centroids(arguments: Mapping[str, Any], vector: Any, partitions: int | None) -> Matrix | None:
    found = arguments.get("ivf_centroids")
    path = arguments.get("ivf_centroids_file")
    if path is not None:
        if found is not None:
            message = "ivf_centroids and ivf_centroids_file cannot be provided at the same time"
            raise ArgumentError(message)
        found = _loaded(str(path))
        partitions = len(found)
    if found is None:
        return None
    matrix = _matrix(found, "IVF centroids")
    if matrix.ndim != 2:
        message = f"Ivf centroids must be 2D array: (clusters, dim), got {matrix.shape}"
        raise ArgumentError(message)
    if not len(matrix):
        message = f"Ivf centroids must have at least one cluster, got {matrix.shape}"
        raise ArgumentError(message)
    if partitions is not None and len(matrix) != partitions:
        message = f"Ivf centroids has {len(matrix)} clusters, but num_partitions={partitions}"
        raise ArgumentError(message)
    if matrix.shape[1] != vector.list_size:
        message = f"Failed to cast centroids to vector type: they have {matrix.shape[1]} numbers, and vectors {vector.list_size}"
        raise ArgumentError(message)
    return matrix.astype(numpy_dtype(vector.value_type))


def _loaded(path: str) -> Matrix:
    files, inside = FileSystem.from_uri(path)
    with files.open_input_file(inside) as file:
        found: Matrix = np.load(io.BytesIO(file.read()), allow_pickle=False)
    return found


def _matrix(found: Any, what: str) -> Matrix:
    """Return numbers that a caller gave, as numpy has them."""
    if isinstance(found, (pa.Array, pa.ChunkedArray)):
        array = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        array = array.storage if isinstance(array, pa.ExtensionArray) else array
        if not t.is_fixed_size_list(array.type) or array.null_count:
            message = f"{what} must be a fixed size list without NULLs, got {array.type}"
            raise TypeError(message)
        return np.asarray(array.flatten().to_numpy()).reshape(len(array), array.type.list_size)
    matrix = np.asarray(found)
    if matrix.dtype not in _FLOATS:
        message = f"{what} must be floating number, got {matrix.dtype}"
        raise TypeError(message)
    return matrix


def _codebook(
    arguments: Mapping[str, Any], settings: VectorSettings, vector: Any, *, has_centroids: bool
) -> Matrix | None:
    """Return a codebook that a caller gave: ``[sub-vector, word, dimension]``, or as it is stored."""
    found = arguments.get("pq_codebook")
    if found is None:
        return None
    if not has_centroids:
        _need_centroids()
    shape = settings.sub_vectors, settings.words, vector.list_size // settings.sub_vectors
    matrix = _matrix(found, "PQ codebook")
    if isinstance(found, (pa.Array, pa.ChunkedArray)) and matrix.size == np.prod(shape):
        matrix = matrix.reshape(shape)
    if matrix.shape != shape:
        message = (
            f"PQ codebook must be 3D array: (sub_vectors, {settings.words}, dim) for num_bits={settings.bits}, "
            f"got {matrix.shape}"
        )
        raise ArgumentError(message)
    return matrix.astype(numpy_dtype(vector.value_type))


def _need_centroids() -> None:
    message = "ivf_centroids must be specified when pq_codebook is provided"
    raise ArgumentError(message)
