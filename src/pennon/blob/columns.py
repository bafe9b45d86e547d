"""Blobs of version 2 as columns of bytes (``blob_handling="all_binary"``).

Their bytes may lie beside the data files, so no data file can give them: a scan reads descriptions,
and the blobs of each batch are fetched then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pennon.blob.pandas import described_by, holds_blobs
from pennon.scan.projection import MetaColumn
from pennon.scan.run.blobs import locate_blobs, read_ranges
from pennon.scan.snapshot import Snapshot
from pennon.schema.blob import is_description
from pennon.schema.blob_arrays import list_lengths, with_items
from pennon.schema.check import is_blob, is_blob_v2
from pennon.schema.field import Field
from pennon.schema.types import EXTENSION_NAME


@dataclass(frozen=True, slots=True)
class BytesOfBlobs:
    """Turns the rows of a scan that shows descriptions into rows with bytes.

    ``described`` is what the scan shows, ``sources`` says which column of the table each of its
    columns is, where it has another name.
    """

    snapshot: Snapshot
    described: pa.Schema
    sources: Mapping[str, str]

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the rows."""
        fields = [
            _shown(field, self._source(field)) if holds_blobs(field) else field
            for field in self.described
        ]
        return pa.schema(fields, self.described.metadata)

    def convert(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches with bytes; they need the column ``_rowaddr``."""
        schema = self.schema
        for batch in batches:
            addresses = batch.column(MetaColumn.ROW_ADDRESS.value).to_pylist()
            arrays = [
                self._bytes(batch.column(field.name), self._source(field), addresses)
                if holds_blobs(field)
                else batch.column(field.name)
                for field in self.described
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _source(self, field: pa.Field[Any]) -> Field:
        return described_by(self.snapshot, self.sources.get(field.name, field.name))

    def _bytes(self, array: Any, field: Field, addresses: list[int]) -> pa.Array[Any]:
        if _is_blob(field):
            found = locate_blobs(self.snapshot, field, addresses, array)
            filled = [blob for blob in found if blob is not None]
            data = iter(read_ranges([(blob, 0, blob.size_bytes) for blob in filled]))
            values = [None if blob is None else next(data).to_pybytes() for blob in found]
            return pa.array(values, pa.large_binary())
        if isinstance(array, pa.ListArray | pa.LargeListArray):
            of_items = np.repeat(addresses, list_lengths(array)).tolist()
            return with_items(array, self._bytes(array.flatten(), field.children[0], of_items))
        if not pa.types.is_struct(array.type):
            return array
        parts = zip(array.type, field.children, strict=True)
        children = [
            self._bytes(array.field(number), child, addresses)
            if holds_blobs(part)
            else array.field(number)
            for number, (part, child) in enumerate(parts)
        ]
        fields = [
            _shown(part, child) if holds_blobs(part) else part
            for part, child in zip(array.type, field.children, strict=True)
        ]
        mask = array.is_null() if array.null_count else None
        joined: pa.Array[Any] = pa.StructArray.from_arrays(children, fields=fields, mask=mask)
        return joined


def _is_blob(field: Field) -> bool:
    return is_blob_v2(field) or (is_blob(field) and not is_description(field))


def _shown(described: pa.Field[Any], field: Field) -> pa.Field[Any]:
    """Return a field with bytes in place of descriptions; metadata as pylance shows it."""
    if _is_blob(field):
        metadata = {key: value for key, value in field.metadata.items() if key != EXTENSION_NAME}
        kept = {key.encode(): value for key, value in metadata.items()}
        return pa.field(described.name, pa.large_binary(), described.nullable, kept or None)
    kind = described.type
    if not pa.types.is_struct(kind):
        item = _shown(kind.value_field, field.children[0])
        return described.with_type(
            pa.large_list(item) if pa.types.is_large_list(kind) else pa.list_(item)
        )
    pairs = zip(kind, field.children, strict=True)
    children = [_shown(part, child) if holds_blobs(part) else part for part, child in pairs]
    return described.with_type(pa.struct(children))
