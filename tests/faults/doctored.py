"""Tables with files of every kind, and what the doctor must say of damage to each of them."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

import pennon
from pennon import doctor
from pennon.errors import FormatError, LanceError, NotFoundError, UnsupportedError

ROWS: Final = 600
DAMAGE: Final = (FormatError, NotFoundError)
"""Errors of a reader that the doctor must have found before."""


def write_everything(uri: Path, *, stable: bool = False, version: str = "2.2") -> None:
    """Write a table of fragments with deletion files, indices, columns in files of their own and sidecars of blobs."""
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=ROWS * 8).astype(np.float32)
    columns = {
        "id": pa.array(range(ROWS), pa.int64()),
        "few": pa.array([f"city {n % 7}" for n in range(ROWS)]),
        "text": pa.array([f"some words of row {n}" for n in range(ROWS)]),
        "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 8),
    }
    schema = pa.schema([pa.field(name, each.type) for name, each in columns.items()])
    arrays: list[pa.Array] = list(columns.values())
    if version == "2.2":
        field = pennon.blob_field("blob", inline_size_threshold=8, dedicated_size_threshold=40)
        values = [b"x" * [4, 20, 60][n % 3] if n % 40 == 0 else None for n in range(ROWS)]
        schema = schema.append(field)
        arrays.append(pennon.blob_array(values))
    table = pa.table(arrays, schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds = pennon.write_dataset(
            table,
            uri,
            max_rows_per_file=200,
            data_storage_version=version,
            enable_stable_row_ids=stable,
        )
        ds.add_columns({"twice": "id * 2"})
        ds.create_scalar_index("id", "BTREE")
        ds.create_scalar_index("few", "BITMAP")
        ds.create_scalar_index("text", "INVERTED")
        ds.create_index("vec", "IVF_PQ", num_partitions=2, num_sub_vectors=2)
        ds.delete("id % 20 = 3")
        ds.tags.create("first", 1)
        ds.create_branch("side")


class Everything:
    """Tables with files of every kind, of which each test gets a copy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def copy(self, uri: Path, *, stable: bool = False, version: str = "2.2") -> Path:
        """Copy a table to a place, and return the place."""
        source = self._folder / f"{stable}-{version}.lance"
        if not source.exists():
            write_everything(source, stable=stable, version=version)
        return Path(shutil.copytree(source, uri))


def files_of(uri: Path) -> Iterator[Path]:
    """Yield the files that the newest version of a table consists of."""
    snapshot = pennon.dataset(uri).snapshot
    manifest = snapshot.manifest
    for fragment in manifest.fragments:
        for ref in fragment.files:
            yield uri / ref.store_path
            yield from sorted((uri / ref.store_path.removesuffix(".lance")).glob("*.blob"))
        if fragment.deletion_file is not None:
            yield uri / fragment.deletion_file.store_path(fragment.id)
    for index in pennon.dataset(uri).describe_indices():
        for segment in index.segments:
            yield from sorted((uri / "_indices" / segment.uuid).rglob("*.*"))


def read_all(uri: Path) -> set[str]:
    """Read all of a table in several ways; return the files that errors of damage name."""
    found: set[str] = set()
    try:
        ds = pennon.dataset(uri)
        names, rows = ds.schema.names, ds.count_rows()
    except (*DAMAGE, UnsupportedError) as error:  # a flag of a feature that no release knows
        return {error.where.file or ""}
    for name in names:
        for read in (
            lambda name=name: ds.to_table(columns=[name]).validate(full=True),
            lambda name=name: ds.take([0, rows // 2, rows - 1] if rows else [], columns=[name]),
        ):
            try:
                read()
            except DAMAGE as error:
                found.add(error.where.file or "")
            except (LanceError, pa.ArrowException):
                continue
    return found


def named_files(report: doctor.Report) -> set[str]:
    """Return the files that errors and warnings of a report name."""
    return {each.file for each in report if each.file and each.severity is not doctor.Severity.NOTE}


def place(path: Path, data: bytes | None) -> None:
    """Put other bytes in the place of a file, which a reader may still map; None takes it away."""
    path.unlink(missing_ok=True)
    if data is not None:
        path.write_bytes(data)
