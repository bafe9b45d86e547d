"""Tables with blob columns of version 2, and the contents of their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

SMALL: dict[str, Any] = {"inline_size_threshold": 4, "dedicated_size_threshold": 30}
"""Thresholds by which short values are of all kinds."""
MIXED = [b"ab", None, b"", b"packed", b"D" * 40, b"also packed", b"1234", b"12345", b"x" * 30]


def make_outside(parent: Path) -> Path:
    """Make a folder with files that blobs may lie in."""
    folder = parent / "outside" / "sub"
    folder.mkdir(parents=True)
    (folder / "a.bin").write_bytes(b"0123456789" * 3)
    (folder / "b c.bin").write_bytes(b"blank")
    return folder.parent


def blobs(values: list[Any], **thresholds: Any) -> pa.Table:
    """Return a table with one column of blobs, ``b``."""
    return named("b", lance.blob_array(values), lance.blob_field("b", **thresholds))


def named(name: str, array: pa.Array, field: pa.Field | None = None) -> pa.Table:
    """Return a table of one column."""
    return pa.table([array], schema=pa.schema([field or pa.field(name, array.type)]))


def version_1() -> pa.Table:
    """Return a table with a blob column of version 1."""
    metadata = {"lance-encoding:blob": "true", "lance-encoding:blob-inline-size-threshold": "4"}
    values = pa.array([b"ab", None, b"", b"z" * 100], pa.large_binary())
    return named("b", values, pa.field("b", pa.large_binary(), metadata=metadata))


def written(module: Any, table: pa.Table, uri: Path, **options: Any) -> Any:
    """Write a table with a module, and return it as pylance reads it."""
    module.write_dataset(table, str(uri), data_storage_version="2.2", **options)
    return lance.dataset(str(uri))


def files_of_blobs(uri: Path) -> list[dict[str, bytes]]:
    """Return the files of blobs beside each data file, by their names."""
    table = lance.dataset(str(uri))
    names = [file.path for part in table.get_fragments() for file in part.data_files()]
    folders = [uri / "data" / name.removesuffix(".lance") for name in names]
    return [{file.name: file.read_bytes() for file in folder.glob("*")} for folder in folders]


def read_all(table: Any, column: str = "b") -> list[bytes | None]:
    """Return the blobs of all rows."""
    rows = range(table.count_rows())
    return [data for _, data in table.read_blobs(column, indices=rows)]
