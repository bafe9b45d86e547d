"""Values that compress beyond what a reader believes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pennon

SIZE = 129 << 20
"""4 KB as zstd, which looks like damage made to fill the memory."""


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_large_value_of_zeros_is_read_back(tmp_path: Path, version: str) -> None:
    rows = pa.table({"data": pa.array([b"a", bytes(SIZE), b"b"], pa.large_binary())})
    table = pennon.write_dataset(rows, tmp_path / "t", data_storage_version=version)
    assert table.to_table() == rows
    assert table.take([1])["data"][0].as_py() == bytes(SIZE)
