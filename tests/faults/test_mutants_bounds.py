"""Damaged statistics of version 0.1, and zone maps of 2.0: a typed error or valid rows of a filter.

What damage does to a bound that is still one, no reader can tell: it may leave out rows, as a damaged
value of a column would.
"""

from __future__ import annotations

import struct
import warnings
from pathlib import Path
from typing import Any

import pytest

import pennon
from pennon.errors import DataLossWarning
from pennon.file.inspect import inspect_file
from pennon.file.open import open_container_file
from pennon.io import open_store
from pennon.proto import file_pb2
from tests.faults.test_mutants import TABLES, Job, check, run_child

FEW = 96
MANY = 800
LEAST_REFUSED = 0.1


def statistics_of(data: Path) -> list[tuple[int, int]]:
    """Return where the statistics, their page table and the metadata of a file of 0.1 lie."""
    ranges = inspect_file(open_store(data.parent).open(data.name))
    kinds = ("statistics", "statistics table", "metadata")
    return [(each.start, each.end) for kind in kinds for each in ranges if each.kind == kind]


def zone_maps_of(data: Path) -> list[tuple[int, int]]:
    """Return where the zone maps of a file of 2.0 lie, their footers by themselves, too."""
    file = open_container_file(open_store(data.parent).open(data.name))
    extents = [buffer for column in file.columns() for buffer in column.buffers]
    wholes = [(each.position, each.end) for each in extents]
    return wholes + [(each.end - 40, each.end) for each in extents]


@pytest.fixture(scope="module", params=["0.1", "2.0"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def job_of(folder: Path, name: str, version: str, count: int) -> Job:
    """Write a table, and return the job that damages what filters look at first."""
    uri = folder / name
    options: dict[str, Any] = {"max_rows_per_group" if version == "0.1" else "rows_per_zone": 50}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataLossWarning)
        pennon.write_dataset(TABLES[name](), uri, data_storage_version=version, **options)
    (data,) = (uri / "data").iterdir()
    regions = statistics_of(data) if version == "0.1" else zone_maps_of(data)
    assert regions
    return Job("filters", str(uri), {str(data.relative_to(folder)): regions}, count)


@pytest.mark.parametrize("name", TABLES)
def test_damaged_statistics_raise_typed_errors_or_filter(
    name: str, version: str, tmp_path: Path
) -> None:
    job = job_of(tmp_path, name, version, FEW)
    check(run_child(tmp_path, job, tmp_path / "plan.json"), FEW, LEAST_REFUSED)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_damaged_statistics_raise_typed_errors_or_filter_with_many_mutants(
    name: str, version: str, tmp_path: Path
) -> None:
    job = job_of(tmp_path, name, version, MANY)
    check(run_child(tmp_path, job, tmp_path / "plan.json"), MANY, LEAST_REFUSED)


def test_damaged_regions_contain_the_statistics(tmp_path: Path) -> None:
    job = job_of(tmp_path, "fixed", "0.1", FEW)
    ((relative, regions),) = job.files.items()
    data = (tmp_path / relative).read_bytes()
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    (size,) = struct.unpack_from("<I", data, position)
    metadata = file_pb2.Metadata.FromString(data[position + 4 : position + 4 + size])
    assert any(start == metadata.statistics.page_table_position for start, _ in regions)
