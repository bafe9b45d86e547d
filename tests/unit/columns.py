"""A small table for tests of column changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import pennon

TABLE = pa.table({"a": list(range(20)), "b": [f"row {n}" for n in range(20)]})


def made(folder: Path, version: str = "2.1", rows: int = 8, **options: Any) -> Any:
    """Return a table of three fragments, of which one has a deleted row."""
    dataset = pennon.write_dataset(
        TABLE, folder, data_storage_version=version, max_rows_per_file=rows, **options
    )
    dataset.delete("a = 9")
    return dataset


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Return the contents of all data files."""
    return {path.name: path.read_bytes() for path in (folder / "data").iterdir()}


def files_of(dataset: Any) -> list[list[list[int]]]:
    """Return the field ids of each file of each fragment."""
    return [[list(file.fields) for file in each.data_files()] for each in dataset.get_fragments()]
