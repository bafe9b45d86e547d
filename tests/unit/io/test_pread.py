"""Ranges that lie far apart in a table too large for its maps are read past the map."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import pennon.io.mapped
from pennon.core.byte_ranges import Gather, SparseRead
from pennon.core.units import MIB
from pennon.errors import FormatError
from pennon.io import open_store
from pennon.io.mapped import MappedReader
from pennon.io.pread import FileBehind, is_sparse
from pennon.io.store import ObjectReader

BODY = np.random.default_rng(3).integers(0, 256, 3 * MIB, np.uint8).tobytes()
STARTS = np.array([10, 5000, 1_000_000, 3 * MIB - 100], np.int64)
ROWS = b"".join(BODY[at : at + 100] for at in STARTS.tolist())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "x").write_bytes(BODY)
    return tmp_path / "x"


@pytest.fixture
def reader(path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectReader:
    """A reader of a file that counts as large."""
    monkeypatch.setattr(pennon.io.mapped, "keeps_account", lambda: True)
    return open_store(str(path.parent)).open("x")


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(
        pennon.io.mapped, "touch", lambda _, start, end, __: found.append((start, end))
    )
    return found


def rows_of(reader: ObjectReader, kind: type[Gather] = Gather) -> bytes:
    (answer,) = reader.read([kind(STARTS, STARTS + 100)])
    found: bytes = answer.to_pybytes()
    return found


def test_sparse_read_thresholds() -> None:
    assert is_sparse(0, MIB, 10)
    assert not is_sparse(0, MIB - 1, 10)
    assert is_sparse(100, 100 + 8 * MIB, 2 * MIB)
    assert not is_sparse(100, 100 + 8 * MIB, 2 * MIB + 1)


def test_distant_rows_are_read_without_the_map(
    reader: ObjectReader, touched: list[tuple[int, int]]
) -> None:
    assert rows_of(reader) == rows_of(reader, SparseRead) == ROWS
    assert not touched
    near = Gather(STARTS[:2], STARTS[:2] + 100)
    assert reader.read([near])[0].to_pybytes() == ROWS[:200]
    assert touched == [(10, 5100)]


def test_deleted_or_replaced_file_is_read_from_the_map(
    reader: ObjectReader, path: Path, touched: list[tuple[int, int]]
) -> None:
    path.unlink()
    assert rows_of(reader) == ROWS
    path.write_bytes(bytes(len(BODY)))
    assert rows_of(reader) == ROWS
    assert len(touched) == 2


def test_truncated_file_is_refused(reader: ObjectReader, path: Path) -> None:
    os.truncate(path, 2 * MIB)
    with pytest.raises(FormatError, match="ends before"):
        rows_of(reader)


def test_pread_leaks_no_descriptor(reader: ObjectReader, path: Path) -> None:
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    assert rows_of(reader) == ROWS
    assert len(list(descriptors.iterdir())) == before
    status = path.parent.stat()
    folder = FileBehind(str(path.parent), status.st_dev, status.st_ino)
    assert folder.gather(STARTS, STARTS + 100, 400) is None


def _mapped(path: Path) -> MappedReader:
    reader = open_store(str(path.parent)).open("x")
    assert isinstance(reader, MappedReader)
    return reader


def test_look_at_near_ranges_notes_them(path: Path, touched: list[tuple[int, int]]) -> None:
    found = _mapped(path).look(np.array([10, 600]), np.array([20, 5000]))
    assert found is not None
    assert found.tobytes() == BODY
    assert touched == [(10, 5000)]


def test_look_at_distant_ranges_is_refused(path: Path, touched: list[tuple[int, int]]) -> None:
    assert _mapped(path).look(STARTS, STARTS + 100) is None
    assert not touched


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (0, 3 * MIB + 1), (20, 10)])
def test_look_beyond_the_file_is_refused(path: Path, start: int, end: int) -> None:
    assert _mapped(path).look(np.array([start]), np.array([end])) is None


def test_glimpse_notes_some_places_of_a_large_table(
    reader: MappedReader, touched: list[tuple[int, int]]
) -> None:
    assert reader.glimpse().tobytes() == BODY
    assert touched == [(0, 3 * MIB)]


def test_glimpse_of_a_small_table_is_not_noted(path: Path, touched: list[tuple[int, int]]) -> None:
    assert _mapped(path).glimpse().tobytes() == BODY
    assert not touched
