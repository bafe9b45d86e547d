"""A written index of vectors, read to be merged with others or for rows that were moved.

What its files say is believed no further than their rows: sizes are compared before they are used.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.rows import Rows
from pennon.errors import FormatError, UnsupportedError
from pennon.index.files import IndexFile, IndexFiles, whole_numbers
from pennon.index.vector.model import Coded, Coder, Model
from pennon.index.vector.new_index import AUXILIARY, INDEX, ROWS
from pennon.index.vector.partitions import coder_of
from pennon.index.vector.rows import Matrix
from pennon.index.vector.settings import KINDS, METRICS, Graph, VectorSettings
from pennon.index.vector.vectors_wire import Partitions, parse_partitions, parse_tensor

_BITS: Final = (4, 8)
_MOST_BITS: Final = 9


@dataclass(frozen=True, slots=True, eq=False)
class StoredIndex:
    """An open index: its model, and how many rows each partition has."""

    model: Model
    parts: Partitions
    file: IndexFile
    coder: Coder

    def read(self, first: int, end: int) -> list[Coded]:
        """Return the rows of partitions ``first`` to ``end``, each with its codes row by row."""
        offsets, lengths = self.parts.offsets[first:end], self.parts.lengths[first:end]
        filled = [(o, n) for o, n in zip(offsets, lengths, strict=True) if n]
        low = min((o for o, _ in filled), default=0)
        high = max((o + n for o, n in filled), default=0)
        names = [ROWS, *(field.name for field in self.coder.fields)]
        whole = coded_of(self.file.read(names, Rows.between(low, high)))
        found = []
        for offset, length in zip(offsets, lengths, strict=True):
            part = whole.at(slice(max(offset - low, 0), max(offset - low, 0) + length))
            found.append(Coded(part.rows, self.coder.unpack(part.columns)))
        return found

    def graphs(self, index: IndexFile) -> tuple[list[str], list[int]]:
        """Return what ``index.idx`` says of the graph of each partition, and how many rows it has."""
        said = _json(index, "lance:hnsw")
        lengths = list(parse_partitions(_buffer(index, "lance:ivf")).lengths)
        if not isinstance(said, list) or not len(said) == len(lengths) == self.model.partitions:
            message = (
                f"{index.source.path} has no graph for each of {self.model.partitions} partitions"
            )
            raise FormatError(message)
        return [str(each) for each in said], lengths


def coded_of(arrays: Sequence[pa.Array[Any]]) -> Coded:
    """Return rows of a file, or of a batch like it.  Raises FormatError if there are NULLs."""
    numbers, *columns = arrays
    rows = whole_numbers(numbers, "row numbers of an index")
    return Coded(rows, tuple(_numbers(each) for each in columns))


def open_stored(files: IndexFiles) -> StoredIndex:
    """Open an index.  Raises FormatError, NotFoundError, and UnsupportedError for older layouts."""
    index, codes = files.file(INDEX), files.file(AUXILIARY)
    model = _model(index, codes)
    parts = parse_partitions(_buffer(codes, "lance:ivf"))
    ends = [o + n for o, n in zip(parts.offsets, parts.lengths, strict=False)]
    fits = len(parts.lengths) == len(parts.offsets) == model.partitions
    if not fits or sum(parts.lengths) != codes.rows or max(ends, default=0) > codes.rows:
        message = (
            f"{codes.source.path} has {len(parts.lengths)} partitions of {sum(parts.lengths)} rows, and is of "
            f"{model.partitions} centroids and {codes.rows} rows"
        )
        raise FormatError(message)
    coder = coder_of(model)
    for field in coder.fields:
        if codes.type_of(field.name) != field.type:
            found = codes.type_of(field.name)
            message = f"{codes.source.path} has codes of {found}, and its model is of {field.type}"
            raise FormatError(message)
    return StoredIndex(model, parts, codes, coder)


def first_graph(files: IndexFiles) -> dict[str, Any]:
    """Return what the index says of the graph of the first partition that has one; raises as `open_stored` does."""
    index = files.file(INDEX)
    said = _json(index, "lance:hnsw")
    filled = [each for each in said if each] if isinstance(said, list) else []
    found = _parsed(index, filled[0]) if filled else {}
    return found if isinstance(found, dict) else {}


def _model(index: IndexFile, codes: IndexFile) -> Model:
    kind, metric = _kind(index)
    said = _json(codes, "storage_metadata")
    said = _parsed(codes, said[0]) if isinstance(said, list) and said else None
    if not isinstance(said, dict):
        message = f"{codes.source.path} does not say how its codes are to be read"
        raise FormatError(message)
    settings = VectorSettings(kind, metric, graph=Graph() if "HNSW" in kind else None)
    parts = parse_partitions(_buffer(index, "lance:ivf"))
    if parts.centroids is None:
        message = f"{index.source.path} has no centroids"
        raise UnsupportedError(message)
    model = Model(settings, parts.centroids, loss=parts.loss)
    if settings.quantizer == "PQ":
        return _product_model(model, codes, said)
    if settings.quantizer == "SQ":
        bounds = said.get("bounds")
        if not isinstance(bounds, dict):
            message = f"{codes.source.path} has no bounds"
            raise FormatError(message)
        pair = float(bounds.get("start", 0)), float(bounds.get("end", 0))
        return Model(settings, model.centroids, bounds=pair, loss=model.loss)
    if settings.quantizer == "RQ":
        return _rabit_model(model, codes, said)
    return model


def _rabit_model(model: Model, codes: IndexFile, said: dict[str, Any]) -> Model:
    """Return the model of RQ; raises UnsupportedError for what releases before 8 wrote."""
    signs, bits = said.get("fast_rotation_signs"), said.get("num_bits")
    is_new = said.get("query_estimator") == "raw_query" and said.get("rotation_type") == "fast"
    whole = isinstance(bits, int) and 1 <= bits <= _MOST_BITS and model.dim % 8 == 0
    size = 4 * -(-model.dim // 8)
    if not (is_new and whole and isinstance(signs, list) and len(signs) == size):
        message = (
            f"{codes.source.path} has codes of RQ as old releases have them; Pennon makes them anew"
        )
        raise UnsupportedError(message)
    settings = replace(model.settings, bits=int(bits or 1), is_plain=not said.get("packed"))
    return Model(settings, model.centroids, signs=bytes(signs), loss=model.loss)


def _product_model(model: Model, codes: IndexFile, said: dict[str, Any]) -> Model:
    bits, parts = said.get("nbits", said.get("num_bits")), said.get("num_sub_vectors")
    if bits not in _BITS or not isinstance(parts, int) or parts < 1 or model.dim % parts:
        message = (
            f"{codes.source.path} has {parts} sub-vectors of {bits} bits in vectors of {model.dim}"
        )
        raise FormatError(message)
    settings = replace(
        model.settings, sub_vectors=parts, bits=bits, is_plain=not said.get("transposed")
    )
    inside = said.get("codebook_tensor")
    if isinstance(inside, list) and inside:
        tensor = parse_tensor(bytes(inside))
    else:
        tensor = parse_tensor(codes.global_buffer(int(said["codebook_position"])).to_pybytes())
    return Model(settings, model.centroids, _codebook(tensor, settings, model.dim), loss=model.loss)


def _codebook(tensor: Matrix, settings: VectorSettings, dim: int) -> Matrix:
    if tensor.shape != (settings.words, dim):
        message = f"a codebook of shape {tensor.shape} is not one of {settings.words} words of {dim} numbers"
        raise FormatError(message)
    return tensor.reshape(settings.sub_vectors, settings.words, dim // settings.sub_vectors)


def _kind(index: IndexFile) -> tuple[str, str]:
    said = _json(index, "lance:index")
    kind, metric = (
        (said.get("type"), said.get("distance_type")) if isinstance(said, dict) else (None, None)
    )
    metric = "l2" if str(metric).lower() == "euclidean" else str(metric).lower()
    if kind not in KINDS or metric not in METRICS:
        message = f"{index.source.path} is of kind {kind} with {metric}, which Pennon makes anew"
        raise UnsupportedError(message)
    return str(kind), metric


def _buffer(file: IndexFile, key: str) -> bytes:
    data: bytes = file.global_buffer(file.number(key, 0)).to_pybytes()
    return data


def _json(file: IndexFile, key: str) -> Any:
    text = file.data.schema.metadata.get(key)
    if text is None:
        message = f"{file.source.path} has no {key}, as an index of vectors has"
        raise UnsupportedError(message)
    return _parsed(file, text)


def _parsed(file: IndexFile, text: bytes | str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        message = f"{file.source.path}: {text!r} is no JSON"
        raise FormatError(message) from None


def _numbers(array: Any) -> Matrix:
    """Return a column without NULLs as numbers, lists as the rows of a matrix."""
    if array.null_count:
        message = "codes of an index are NULL"
        raise FormatError(message)
    if hasattr(array.type, "list_size"):
        flat = array.flatten()
        return np.asarray(flat.to_numpy()).reshape(len(array), array.type.list_size)
    return np.asarray(array.to_numpy())
