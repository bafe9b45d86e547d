from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pennon.core.kernels.mapping import Mapping, mapped_bytes
from pennon.core.units import MIB
from pennon.io.map_budget import LONG_BYTES, TOUCH_BYTES, Resident


def mapping_of(path: Path, size_bytes: int) -> Mapping:
    path.write_bytes(bytes(size_bytes))
    fd = os.open(path, os.O_RDONLY)
    try:
        return Mapping(fd, size_bytes)
    finally:
        os.close(fd)


class Spy(Mapping):
    """A map that notes what it was told to forget."""

    forgotten: list[tuple[int, int]]

    @classmethod
    def over(cls, path: Path, size_bytes: int) -> Spy:
        """Return a map of a new file."""
        path.write_bytes(bytes(size_bytes))
        fd = os.open(path, os.O_RDONLY)
        try:
            mapping = cls(fd, size_bytes)
        finally:
            os.close(fd)
        mapping.forgotten = []
        return mapping

    def forget(self, position: int, size_bytes: int) -> None:
        self.forgotten.append((position, size_bytes))


@pytest.fixture
def spy(tmp_path: Path) -> Spy:
    return Spy.over(tmp_path / "x", MIB)


def test_mapped_bytes_count_live_maps(tmp_path: Path) -> None:
    gc.collect()
    before = mapped_bytes()
    mapping = mapping_of(tmp_path / "x", 1000)
    assert mapped_bytes() == before + 1000
    del mapping
    assert mapped_bytes() == before


def test_mapping_is_readable_after_forget(tmp_path: Path) -> None:
    mapping = mapping_of(tmp_path / "x", 20_000)
    (tmp_path / "x").write_bytes(b"7" * 20_000)
    view = memoryview(mapping)
    assert view[9_000] == ord("7")
    for position, size in ((0, 20_000), (5_000, 10), (19_999, 1), (0, 0), (20_000, 0)):
        mapping.forget(position, size)
    assert bytes(view) == b"7" * 20_000
    for position, size in ((-1, 5), (0, 20_001), (19_999, 2), (0, -1), (2**62, 2**62)):
        with pytest.raises(ValueError, match="leaves"):
            mapping.forget(position, size)


def test_map_budget_releases_the_oldest_ranges(spy: Spy) -> None:
    resident = Resident(3 * TOUCH_BYTES)
    for start in range(5):
        resident.touch(spy, start * 10, start * 10 + 10, 10)
    assert spy.forgotten == [(0, 10), (10, 10)]
    resident.touch(spy, 100, 900_000, 900_000)
    assert spy.forgotten[2:] == [(20, 10), (30, 10), (40, 10)]


def test_map_budget_forgets_scattered_ranges_once(spy: Spy) -> None:
    """Takes touch a little all over the file: the oldest to go takes the others along."""
    resident = Resident(3 * TOUCH_BYTES)
    for _ in range(3):
        resident.touch(spy, 0, MIB, TOUCH_BYTES)
    resident.touch(spy, 10, MIB, TOUCH_BYTES)
    assert spy.forgotten == [(0, MIB)]
    for _ in range(2):
        resident.touch(spy, 10, MIB, TOUCH_BYTES)
    assert spy.forgotten == [(0, MIB)]
    resident.touch(spy, 10, MIB, TOUCH_BYTES)
    assert spy.forgotten == [(0, MIB), (10, MIB - 10)]


def test_map_budget_with_room_releases_no_ranges(spy: Spy) -> None:
    resident = Resident(mapped_bytes())
    for _ in range(100):
        resident.touch(spy, 0, MIB, MIB)
        resident.touch(spy, 0, 10, 10)
    assert spy.forgotten == []


def test_map_budget_releases_long_ranges_before_short_ones(spy: Spy) -> None:
    resident = Resident(3 * LONG_BYTES)
    resident.touch(spy, 0, 10, 10)
    ranges = [(number * LONG_BYTES, LONG_BYTES) for number in range(1, 4)]
    for start, size in ranges:
        resident.touch(spy, start, start + size, size)
    assert spy.forgotten == ranges[:2]


def test_map_budget_counts_repeated_ranges_once(spy: Spy) -> None:
    resident = Resident(8 * TOUCH_BYTES)
    for _ in range(3):
        for start in (0, 2 * TOUCH_BYTES):
            resident.touch(spy, start, start + 2 * TOUCH_BYTES, 2 * TOUCH_BYTES)
    assert not spy.forgotten
    resident.touch(spy, 0, 4 * TOUCH_BYTES, 4 * TOUCH_BYTES)  # in place of both
    assert not spy.forgotten
    resident.touch(spy, 5 * TOUCH_BYTES, 7 * TOUCH_BYTES, 2 * TOUCH_BYTES)
    assert spy.forgotten == [(0, 4 * TOUCH_BYTES)]


def test_map_budget_counts_short_ranges_of_a_repeated_scan_once(spy: Spy) -> None:
    resident = Resident(8 * TOUCH_BYTES)
    for _ in range(20):
        for start in range(7):
            resident.touch(spy, start * 1000, start * 1000 + 900, 900)
    assert not spy.forgotten
    for start in range(3):  # the newest of them stay
        resident.touch(spy, MIB // 2 + start, MIB // 2 + start + 10, 10)
    assert spy.forgotten == [(0, 900), (1000, 900)]


def test_map_budget_counts_a_small_file_whole(tmp_path: Path) -> None:
    small = Spy.over(tmp_path / "small", 2 * TOUCH_BYTES)
    more = Spy.over(tmp_path / "more", MIB)
    resident = Resident(4 * TOUCH_BYTES)
    for start in range(50):
        resident.touch(small, start * 1000, start * 1000 + 10, 10)
    assert not small.forgotten
    for start in (0, 10, 20):
        resident.touch(more, start, start + 10, 10)
    assert small.forgotten == [(0, 2 * TOUCH_BYTES)]
    assert not more.forgotten


def test_map_budget_forgets_old_ranges_when_mappings_grow(spy: Spy, tmp_path: Path) -> None:
    resident = Resident(mapped_bytes())
    for start in (0, LONG_BYTES):
        resident.touch(spy, start, start + LONG_BYTES, LONG_BYTES)
    more = mapping_of(tmp_path / "more", MIB)
    resident.touch(more, 0, MIB, MIB)
    assert spy.forgotten == [(0, LONG_BYTES), (LONG_BYTES, LONG_BYTES)]


def test_an_account_keeps_no_map_alive(tmp_path: Path) -> None:
    gc.collect()
    before = mapped_bytes()
    resident = Resident(0)
    mapping = mapping_of(tmp_path / "x", 1000)
    resident.touch(mapping, 0, 1000, 1000)
    del mapping
    assert mapped_bytes() == before
    resident.touch(mapping_of(tmp_path / "y", 10), 0, 10, 10)


HEAD = """
import sys, numpy as np
from pennon.io import open_store
from pennon.core.byte_ranges import ByteRange, Gather
from pennon.core.units import MIB

def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("RssFile"))

before, most = resident(), 0
"""
SCAN = """
readers = [open_store(sys.argv[1]).open(name) for name in "ab"]
for reader in readers:
    kept = [reader.read([ByteRange(at, 8 * MIB)])[0] for at in range(0, reader.size_bytes, 8 * MIB)]
    for at in range(0, reader.size_bytes, 8 * MIB):
        (buffer,) = reader.read([ByteRange(at, 8 * MIB)])
        assert not np.frombuffer(memoryview(buffer), np.uint8)[::4096].any()
        most = max(most, resident() - before)
    for seed in range(8):
        rows = np.random.default_rng(seed).integers(0, reader.size_bytes - 8, 1000)
        reader.read([Gather(rows, rows + 8)])
print(most)
"""


def test_scans_of_large_files_stay_within_the_map_budget(tmp_path: Path) -> None:
    for name in "ab":
        with (tmp_path / name).open("wb") as sparse:
            sparse.truncate(256 * MIB)
    assert most_resident(SCAN, tmp_path) < 128 + 72  # the budget, and libraries loaded meanwhile


GATHERS = """
kept = []
for name in "ab":
    reader = open_store(sys.argv[1]).open(name)
    for at in range(0, reader.size_bytes, 4 * MIB):
        rows = np.arange(at, at + 4 * MIB, 4096)
        reader.read([Gather(rows, rows + 2048)])
        most = max(most, resident() - before)
    kept.append(reader)
print(most)
"""


def test_gathered_ranges_of_the_first_file_stay_within_the_map_budget(tmp_path: Path) -> None:
    """The first file alone is within the budget, so nothing has to be given back before the second comes."""
    for name in "ab":
        with (tmp_path / name).open("wb") as sparse:
            sparse.truncate(112 * MIB)
    assert most_resident(GATHERS, tmp_path) < 112 + 40


def most_resident(script: str, folder: Path) -> int:
    """Return how many MiB of files a new process has mapped at most."""
    command = [sys.executable, "-c", HEAD + script, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return int(done.stdout)
