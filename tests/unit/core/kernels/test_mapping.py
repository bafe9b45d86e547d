from __future__ import annotations

import gc
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from pennon.core.kernels.mapping import Mapping


def mapped(path: Path, body: bytes) -> Mapping:
    path.write_bytes(body)
    fd = os.open(path, os.O_RDONLY)
    try:
        return Mapping(fd, len(body))
    finally:
        os.close(fd)


def test_the_map_outlives_its_descriptor_its_file_and_itself(tmp_path: Path) -> None:
    path = tmp_path / "x"
    mapping = mapped(path, b"hello")
    assert len(mapping) == 5
    path.unlink()
    piece = pa.py_buffer(mapping).slice(1, 3)
    del mapping
    gc.collect()
    assert piece.to_pybytes() == b"ell"


def test_the_map_is_read_only(tmp_path: Path) -> None:
    view = memoryview(mapped(tmp_path / "x", b"hello"))
    assert view.readonly
    with pytest.raises(TypeError):
        view[0] = 1


def test_mapping_of_bad_descriptor_or_empty_file_fails(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="descriptor"):
        Mapping(-1, 5)
    with pytest.raises(ValueError, match="bytes"):
        mapped(tmp_path / "x", b"")
    with pytest.raises(TypeError):
        pickle.dumps(mapped(tmp_path / "y", b"1"))
