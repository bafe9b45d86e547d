"""Trained models of vector indices, in files of their own (pylance's ``lance.indices``)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

import pyarrow as pa

from pennon.errors import FormatError
from pennon.file.facade import LanceFileReader, LanceFileWriter

_METRIC = "distance_type"
_PARTS = "num_subvectors"
_BITS = "num_bits"


class IvfModel:
    """Centroids of partitions, as many as vectors of a fixed-size list, and the metric that they were trained by.

    >>> import pyarrow as pa, tempfile
    >>> from pennon.indices import IvfModel
    >>> path = tempfile.mkdtemp() + "/ivf.lance"
    >>> IvfModel(pa.array([[0.0, 1.0]], pa.list_(pa.float32(), 2)), "l2").save(path)
    >>> IvfModel.load(path).num_partitions
    1
    """

    def __init__(self, centroids: pa.Array[Any], distance_type: str) -> None:
        self.centroids = centroids
        self.distance_type = distance_type

    @property
    def num_partitions(self) -> int:
        """Return the number of centroids."""
        return len(self.centroids)

    def save(
        self, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
    ) -> None:
        """Write the model to a Lance file, a local path or a URI."""
        said = {_METRIC: self.distance_type}
        _save(uri, "centroids", self.centroids, said, storage_options)

    @classmethod
    def load(
        cls, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
    ) -> Self:
        """Read what `save`, here or of pylance, wrote.  Raises FormatError for a file of something else."""
        found, said = _load(uri, "centroids", storage_options)
        return cls(found, _said(uri, said, _METRIC))


class PqModel:
    """A codebook: ``2 ** num_bits`` words for each of ``num_subvectors`` parts of a vector.

    ``codebook``: fixed-size lists of as many numbers as a vector has, as many rows as a part has words; laid out by
    part, then by word, so that no row is a word.
    """

    def __init__(
        self, num_subvectors: int, codebook: pa.FixedSizeListArray[Any], *, num_bits: int = 8
    ) -> None:
        self.num_subvectors = num_subvectors
        self.num_bits = num_bits
        self.codebook = codebook

    @property
    def dimension(self) -> int:
        """Return how many numbers a vector has."""
        size: int = self.codebook.type.list_size
        return size

    def save(
        self, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
    ) -> None:
        """Write the model to a Lance file, a local path or a URI."""
        said = {_PARTS: str(self.num_subvectors), _BITS: str(self.num_bits)}
        _save(uri, "codebook", self.codebook, said, storage_options)

    @classmethod
    def load(
        cls, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
    ) -> Self:
        """Read what `save`, here or of pylance, wrote.  Raises FormatError for a file of something else."""
        found, said = _load(uri, "codebook", storage_options)
        bits = _number(uri, said, _BITS) if _BITS in said else 8
        return cls(_number(uri, said, _PARTS), found, num_bits=bits)


def _save(
    uri: str | os.PathLike[str],
    name: str,
    values: pa.Array[Any],
    said: Mapping[str, str],
    storage_options: Mapping[str, str] | None,
) -> None:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    options = None if storage_options is None else dict(storage_options)
    schema = pa.schema([pa.field(name, values.type)])
    with LanceFileWriter(uri, schema, storage_options=options) as writer:
        for key, value in said.items():
            writer.add_schema_metadata(key, value)
        writer.write_batch(pa.RecordBatch.from_arrays([values], schema=schema))


def _load(
    uri: str | os.PathLike[str], name: str, storage_options: Mapping[str, str] | None
) -> tuple[Any, dict[str, str]]:
    """Return the column of a model's file, and what the file says of it."""
    table = LanceFileReader(uri, storage_options).read_all().to_table()
    if name not in table.schema.names:
        message = f"{os.fspath(uri)} has the columns {', '.join(table.schema.names)}, and no {name}"
        raise FormatError(message)
    said = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
    found = table.column(name).combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found, said


def _said(uri: str | os.PathLike[str], said: Mapping[str, str], key: str) -> str:
    if key not in said:
        message = f"{os.fspath(uri)} does not say its {key}, as the file of a model does"
        raise FormatError(message)
    return said[key]


def _number(uri: str | os.PathLike[str], said: Mapping[str, str], key: str) -> int:
    text = _said(uri, said, key)
    if not text.isdecimal() or len(text) > 9:
        message = f"{os.fspath(uri)}: {key} is {text!r}, and no number"
        raise FormatError(message)
    return int(text)
