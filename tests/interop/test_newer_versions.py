"""Tables of file versions that Pennon does not read: refused, with the version and the newest it reads."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import UnsupportedError
from pennon.file import LanceFileReader
from tests.interop.oracle import Oracle

TABLE = pa.table({"a": [1, 2, 3], "s": ["x", None, ""]})


@pytest.fixture
def uri(newest: Oracle, folder: Path) -> Path:
    """A table of version 2.2."""
    newest.write(folder / "t", TABLE)
    return folder / "t"


def _data_file(uri: Path) -> Path:
    (path,) = (uri / "data").iterdir()
    return path


def _check_refused(uri: Path, version: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"\b{version}\b.*\b2\.2\b") as caught:
        pennon.dataset(uri).to_table()
    assert isinstance(caught.value, NotImplementedError)


def test_default_file_version_of_pylance_is_read(uri: Path) -> None:
    dataset = pennon.dataset(uri)
    assert dataset.data_storage_version == "2.2"
    assert dataset.to_table().equals(TABLE)


@pytest.mark.parametrize("name", ["2.3", "next"])
def test_file_version_2_3_is_not_readable_as_2_2(newest: Oracle, name: str, folder: Path) -> None:
    """Its pages are of a kind of their own (PlanarLayout)."""
    newest.write(folder / "t", TABLE, data_storage_version=name)
    assert b"PlanarLayout" in _data_file(folder / "t").read_bytes()
    _check_refused(folder / "t", r"2\.3")


def test_file_version_2_3_has_the_page_bytes_of_2_2(newest: Oracle, folder: Path) -> None:
    """What both versions encode alike has the same bytes, up to the global buffers and what follows."""
    rows = [[number * 7919 % 1009, None][: number % 3] for number in range(5000)]
    table = pa.table({"c": pa.array(rows, pa.list_(pa.int64()))})
    found = []
    for version in ("2.2", "2.3"):
        newest.write(folder / version, table, data_storage_version=version)
        found.append(_data_file(folder / version).read_bytes())
    (page,) = LanceFileReader(_data_file(folder / "2.2")).metadata().columns[0].pages
    end = max(buffer.position + buffer.size for buffer in page.buffers)
    assert end > 5000
    assert found[0][:end] == found[1][:end]


@pytest.mark.parametrize("numbers", [(2, 3), (2, 9), (3, 0), (65535, 65535)])
def test_newer_file_version_in_footer_is_refused(uri: Path, numbers: tuple[int, int]) -> None:
    path = _data_file(uri)
    path.write_bytes(path.read_bytes()[:-8] + struct.pack("<HH4s", *numbers, b"LANC"))
    version = r"{}\.{}".format(*numbers)
    _check_refused(uri, version)
    with pytest.raises(UnsupportedError, match=rf"\b{version}\b.*\b2\.2\b"):
        LanceFileReader(path).read_all()


@pytest.mark.parametrize("version", ["2.9", "9.9"])
def test_newer_file_version_in_manifest_is_refused(uri: Path, version: str) -> None:
    (path,) = (uri / "_versions").glob("*.manifest")
    data = path.read_bytes()
    stated = b"\x0a\x05lance\x12\x03"
    assert stated + b"2.2" in data
    path.write_bytes(data.replace(stated + b"2.2", stated + version.encode()))
    _check_refused(uri, version.replace(".", r"\."))
