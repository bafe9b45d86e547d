from __future__ import annotations

import gc
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from pennon.core.kernels.mapping import Mapping, map_files, mapped_bytes


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


def test_many_files_are_mapped_in_one_call(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"three")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    before = mapped_bytes()
    names = ["a", "gone", "empty", "pipe", ".", "b"]
    found = map_files([os.fsencode(tmp_path / name) for name in names])
    assert [each is not None for each in found] == [True, False, False, False, False, True]
    assert mapped_bytes() == before + 8
    for name, each in (("a", found[0]), ("b", found[5])):
        status = (tmp_path / name).stat()
        assert each is not None
        mapping, device, inode, told = each
        assert bytes(memoryview(mapping)) == (tmp_path / name).read_bytes()
        assert (device, inode) == (status.st_dev, status.st_ino)
        assert told == (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    del found, each, mapping
    assert mapped_bytes() == before


def test_paths_with_a_zero_byte_are_refused_without_a_map_left(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    before = mapped_bytes()
    path = os.fsencode(tmp_path / "a")
    with pytest.raises(ValueError, match="null byte"):
        map_files([path, path + b"\0x"])
    with pytest.raises(TypeError):
        map_files([path, "a"])  # type: ignore[list-item]
    assert map_files([]) == []
    assert mapped_bytes() == before
