"""Blobs in pandas frames: as files, as bytes, or as descriptions (pylance's ``blob_mode``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.blob.file import BlobFile
from pennon.errors import ArgumentError
from pennon.scan.run.blobs import locate_blobs
from pennon.scan.snapshot import Snapshot
from pennon.schema.check import BLOB
from pennon.schema.field import Field
from pennon.schema.project import resolve

if TYPE_CHECKING:
    import pandas as pd

BLOB_MODES: Final = ("lazy", "bytes", "descriptions")

Names = tuple[str, ...]


def check_blob_mode(blob_mode: str) -> None:
    """Raise ArgumentError for a mode that is not there."""
    if blob_mode not in BLOB_MODES:
        message = f"blob_mode must be one of: {', '.join(map(repr, BLOB_MODES))}"
        raise ArgumentError(message)


def blob_paths(schema: pa.Schema) -> list[Names]:
    """Return the way to each blob that the rows of a scan describe, through structs."""
    return [path for field in schema for path in _paths(field, ())]


def _paths(field: pa.Field[Any], above: Names) -> Iterator[Names]:
    path = (*above, field.name)
    if not pa.types.is_struct(field.type):
        return
    if (field.metadata or {}).get(BLOB.encode()) == b"true":
        yield path
        return
    for child in field.type:
        yield from _paths(child, path)


def holds_blobs(field: pa.Field[Any]) -> bool:
    """Tell whether a field is a description, or a struct or list with one in it."""
    kind = field.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return holds_blobs(kind.value_field)
    if not pa.types.is_struct(kind):
        return False
    return (field.metadata or {}).get(BLOB.encode()) == b"true" or any(map(holds_blobs, kind))


def described_by(snapshot: Snapshot, name: str) -> Field:
    """Return the field of the table that a column of a scan shows."""
    return resolve(snapshot.manifest.schema, name)[-1]


def frame_with_files(
    snapshot: Snapshot,
    sources: Mapping[str, str],
    table: pa.Table,
    addresses: list[int],
    options: Mapping[str, Any],
) -> pd.DataFrame:
    """Return a table as a frame with a `BlobFile`, or None, for each description.

    ``sources`` says which column of the table each column of the result is, where it has another
    name; ``options`` are for `pyarrow.Table.to_pandas`.
    """
    paths = blob_paths(table.schema)
    whole = [path[0] for path in paths if len(path) == 1]
    frame: pd.DataFrame = table.drop_columns(whole).to_pandas(**options)
    order = table.schema.names
    for path in paths:
        name = path[0]
        column = _source(snapshot, sources.get(name, name), path[1:])
        files = _files(snapshot, column, addresses, table, path)
        if len(path) == 1:
            frame.insert(order.index(name), name, files)
        else:
            pairs = zip(frame[name].tolist(), files, strict=True)
            frame[name] = [_with_file(row, path[1:], file) for row, file in pairs]
    return frame


def _source(snapshot: Snapshot, name: str, below: Names) -> Field:
    """Return the blob column of the table that a column of the result shows."""
    field = described_by(snapshot, name)
    for step in below:
        field = next(child for child in field.children if child.name == step)
    return field


def _files(
    snapshot: Snapshot, column: Field, addresses: list[int], table: pa.Table, path: Names
) -> list[BlobFile | None]:
    descriptions: Any = table.column(path[0])
    for step in path[1:]:
        chunks = [pc.struct_field(chunk, step) for chunk in descriptions.chunks]
        descriptions = pa.chunked_array(chunks, descriptions.type.field(step).type)
    found = locate_blobs(snapshot, column, addresses, descriptions)
    return [None if blob is None else BlobFile(blob) for blob in found]


def _with_file(row: Any, path: Names, file: BlobFile | None) -> Any:
    """Return a struct, as a dict, with the file in the place of its description."""
    if row is None:
        return None
    below = file if len(path) == 1 else _with_file(row[path[0]], path[1:], file)
    return {**row, path[0]: below}
