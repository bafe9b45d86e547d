"""Damage in any part of a 0.1 file: a typed error or valid rows.

The oracle writes the files: pages, page table, statistics, dictionaries, manifest, metadata, footer.
`mutants` damages each part as often as any other, and judges the reads.
"""

from __future__ import annotations

import struct
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from pennon.proto import file_pb2
from tests.faults.mutants import mutants_of
from tests.faults.test_mutants import SEED, Job, check, run_child

FEW = 60
MANY = 1700
TABLES = ("fixed", "variable", "nested")
LEAST_REFUSED = 0.2

_WRITE = """
import sys, lance, pyarrow as pa
from tests.faults import test_mutants as t
options = {"data_storage_version": "legacy", "max_rows_per_group": 256}
for name in sys.argv[2:]:
    lance.write_dataset(t.TABLES[name](), f"{sys.argv[1]}/{name}", **options)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("legacy")
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", _WRITE, str(made), *TABLES], check=True, cwd=root)
    return made


def regions_of(data: bytes) -> list[tuple[int, int]]:
    """Return the parts of a file, in their order."""
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    (size,) = struct.unpack_from("<I", data, position)
    metadata = file_pb2.Metadata.FromString(data[position + 4 : position + 4 + size])
    borders = [
        0,
        metadata.page_table_position,
        *sorted((metadata.statistics.page_table_position, metadata.manifest_position)),
        position,
        len(data) - 16,
        len(data),
    ]
    return [(start, end) for start, end in pairwise(borders) if end > start]


def job_of(folder: Path, name: str, reader: str, count: int) -> Job:
    """Return the job that damages the data file of a table."""
    uri = folder / name
    (data,) = (uri / "data").iterdir()
    target = uri if reader == "dataset" else data
    files = {str(data.relative_to(folder)): regions_of(data.read_bytes())}
    return Job(reader, str(target), files, count)


@pytest.mark.parametrize("name", TABLES)
def test_damaged_0_1_files_raise_typed_errors_or_read(
    folder: Path, name: str, tmp_path: Path
) -> None:
    _try(folder, name, tmp_path, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_damaged_0_1_files_raise_typed_errors_or_read_with_many_mutants(
    folder: Path, name: str, tmp_path: Path
) -> None:
    _try(folder, name, tmp_path, MANY)


def _try(folder: Path, name: str, plans: Path, count: int) -> None:
    for reader in ("dataset", "file"):
        job = job_of(folder, name, reader, count)
        check(run_child(folder, job, plans / "plan.json"), count, LEAST_REFUSED)


def test_mutants_of_0_1_files_hit_every_region(folder: Path) -> None:
    (data,) = (folder / "nested" / "data").iterdir()
    regions = regions_of(data.read_bytes())
    assert len(regions) == 6
    found = mutants_of("a", data.read_bytes(), regions, SEED, FEW)
    edited = {position for mutant in found for position, _ in mutant.edits}
    assert all(any(a <= position < b for position in edited) for a, b in regions)
