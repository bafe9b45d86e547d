"""Data files of version 0.1 that hold no manifest: schema and dictionaries are in the table's."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.dataset.lance_dataset import LanceDataset
from pennon.errors import FormatError
from pennon.io import open_store
from pennon.proto import file_pb2
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest

TABLE = pa.table(
    {
        "d": pa.array(["p", "q", "p", "r"] * 25).dictionary_encode(),
        "s": pa.StructArray.from_arrays(
            [pa.array([[7, 8], []] * 50), pa.array([5, 6] * 50).dictionary_encode()], ["l", "i"]
        ),
    }
)
OPTIONS: dict[str, Any] = {"data_storage_version": "0.1", "max_rows_per_group": 30}


def without_manifest(data: bytes) -> bytes:
    """Return a file as one whose writer put no manifest into it."""
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    (size,) = struct.unpack_from("<I", data, position)
    metadata = file_pb2.Metadata.FromString(data[position + 4 : position + 4 + size])
    metadata.manifest_position = 0
    message = metadata.SerializeToString()
    return data[:position] + struct.pack("<I", len(message)) + message + data[-16:]


def written(uri: Path) -> LanceDataset:
    """Return a table of two data files."""
    for number in range(2):
        pennon.write_dataset(
            TABLE.slice(number * 50, 50), uri, mode="append" if number else "create", **OPTIONS
        )
    for path in (uri / "data").iterdir():
        data = without_manifest(path.read_bytes())
        path.write_bytes(data)
    store = open_store(uri)
    return LanceDataset.of_snapshot(str(uri), Snapshot(store, read_manifest(store)))


def test_files_0_1_without_schema_are_read_with_the_manifest(tmp_path: Path) -> None:
    table = written(tmp_path)
    assert table.to_table().to_pylist() == TABLE.to_pylist()
    rows = np.random.default_rng(1).permutation(100)[:30].tolist()
    assert table.take(rows).to_pylist() == TABLE.take(pa.array(rows)).to_pylist()
    assert table.to_table(filter="d = 'r' AND s.i = 6").num_rows == 25
    assert table.count_rows("s.i = 5") == 50


def test_dictionary_missing_in_file_and_manifest_is_refused(tmp_path: Path) -> None:
    table = written(tmp_path)
    object.__setattr__(table.snapshot.manifest, "dictionaries", {})
    with pytest.raises(FormatError, match=r"neither the file nor .* \[column 'd'"):
        table.to_table()
    assert table.to_table(columns=["s.l"]).num_rows == 100
