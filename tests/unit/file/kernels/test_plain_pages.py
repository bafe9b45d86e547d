"""The one page of a column in each of many files, compared with what the opened files say."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import pennon
from pennon.file.container.column_metadata import Direct
from pennon.file.kernels.column_metadata import find_plain_pages
from pennon.file.open import open_container_file
from pennon.io.local import LocalStore
from tests.seeds import each_seed

ROWS = (7, 30, 1200)
Bytes = npt.NDArray[np.uint8]


def _files(folder: Path, version: str = "2.1") -> list[tuple[str, Bytes]]:
    """Write a file for each number of rows: a column of numbers, of texts, of few texts, and of NULLs."""
    for rows in ROWS:
        columns = {
            "n": np.arange(rows),
            "t": [f"text {i}" for i in range(rows)],
            "few": ["ab" * 90 if i % 2 else "cd" * 80 for i in range(rows)],
            "null": pa.nulls(rows, pa.int32()),
        }
        pennon.write_dataset(pa.table(columns), folder, mode="append", data_storage_version=version)
    fragments = pennon.dataset(folder).get_fragments()
    paths = [f"data/{each.data_files()[0].path}" for each in fragments]
    return [(path, np.fromfile(folder / path, np.uint8)) for path in paths]


def _encoding(folder: Path, path: str, column: int) -> bytes:
    file = open_container_file(LocalStore(str(folder), str(folder)).open(path))
    encoding = file.columns()[column].pages[0].encoding
    assert isinstance(encoding, Direct)
    return encoding.data


def test_plain_pages_of_files_are_those_of_their_metadata(tmp_path: Path) -> None:
    files = _files(tmp_path)
    columns = np.array([[0] * 3, [1] * 3, [2] * 3, [3] * 3, [0, 9, -1]])
    models = [_encoding(tmp_path, files[0][0], column) for column in (0, 1, 2, 3, 0)]
    version = files[0][1][-8:].tobytes()
    found = find_plain_pages([data for _, data in files], np.array(ROWS), columns, models, version)
    for at, (path, data) in enumerate(files):
        opened = open_container_file(LocalStore(str(tmp_path), str(tmp_path)).open(path))
        for leaf, column in enumerate((0, 1, 2)):
            page = opened.columns()[column].pages[0]
            assert isinstance(page.encoding, Direct)
            extents = [(each.position, each.size_bytes) for each in page.buffers]
            likeness, *places, first, end = found[leaf, at].tolist()
            assert likeness == (1 if page.encoding.data == models[leaf] else 2)
            assert places == [*sum(extents, ()), *([-1, 0] if len(extents) == 2 else [])]
            assert data[first:end].tobytes() == page.encoding.data
    assert (found[2, -1, 5:7] > 0).all(), "the dictionary of few texts"
    assert not found[3, :, 0].any(), "constant pages have no chunks"
    assert found[4, :, 0].tolist() == [1, 0, 0], "a column that a file does not have"


def test_plain_pages_of_other_rows_or_version_are_not_found(tmp_path: Path) -> None:
    files = _files(tmp_path)
    (path, data), model = files[1], _encoding(tmp_path, files[1][0], 0)
    one = np.zeros((1, 1), np.int64)

    def likeness(whole: Bytes, rows: int, version: bytes) -> int:
        return int(find_plain_pages([whole], np.array([rows]), one, [model], version)[0, 0, 0])

    version = data[-8:].tobytes()
    assert path
    assert likeness(data, 30, version) == 1
    assert likeness(data, 31, version) == 0
    assert likeness(data, 30, b"\2\0\0\0LANC") == 0
    assert likeness(data[:39], 30, version) == 0
    assert likeness(data[:0], 30, version) == 0
    for wrong in (
        ([data], np.array([30, 30]), one, [model], version),
        ([data], np.array([30]), np.zeros((2, 1), np.int64), [model], version),
        ([data], np.array([30]), one, [b""], version),
        ([data], np.array([30]), one, [model], b"LANC"),
    ):
        with pytest.raises(ValueError, match=r"differ in number|without bytes|of 4 bytes"):
            find_plain_pages(*wrong)


@each_seed(10)
def test_plain_pages_of_damaged_files_lie_within_them(tmp_path: Path, seed: int) -> None:
    path, data = _files(tmp_path)[seed % 3]
    model = _encoding(tmp_path, path, 0)
    rng = random.Random(seed)
    columns = np.array([[0], [1], [2]])
    version = data[-8:].tobytes()
    found_some = False
    for _ in range(400):
        bad = data.copy()
        for _ in range(rng.randint(1, 4)):
            bad[-rng.randint(9, min(len(bad), 700))] = rng.choice([0, 1, 127, 128, 255])
        bad = bad[rng.choice([0, 0, 0, 8]) :]
        found = find_plain_pages([bad], np.array([ROWS[seed % 3]]), columns, [model] * 3, version)
        for likeness, *places, first, end in found.reshape(3, 9).tolist():
            if likeness:
                found_some = True
                for position, size_bytes in zip(places[::2], places[1::2], strict=True):
                    assert position == -1 or 0 <= position <= position + size_bytes <= len(bad)
                assert 0 <= first <= end <= len(bad)
    assert found_some
