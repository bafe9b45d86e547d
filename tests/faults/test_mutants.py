"""Damaged bytes give one of our typed errors or valid rows: never a crash, a hang or a gigabyte.

Each file is damaged in all its parts alike: a data file in its pages, its column metadata, its
offset tables and its footer; a manifest in its messages and its footer.  `mutants.py` says how a
file is damaged and how the end of a read is judged; it runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from tests.faults.mutants import SPARE_BYTES

ROWS = 600
MUTANTS_OF_A_DATA_FILE = 450
MUTANTS_OF_A_MANIFEST = 900
MUTANTS_OF_A_DELETION_FILE = 350
LEAST_REFUSED = 0.25
SEED = int(os.environ.get("PENNON_MUTANTS_SEED", "20"))


def _some(values: Sequence[object]) -> list[object]:
    return [None if row % 5 == 2 else value for row, value in enumerate(values)]


def fixed_width() -> pa.Table:
    """Numbers of all widths, bits, decimals, times and fixed-size lists, with NULLs and without."""
    numbers = list(range(ROWS))
    return pa.table(
        {
            "int64": pa.array(numbers, pa.int64()),
            "int8": pa.array(_some([n % 100 for n in numbers]), pa.int8()),
            "bool": pa.array(_some([n % 3 == 0 for n in numbers]), pa.bool_()),
            "none": pa.array([None] * ROWS, pa.int32()),
            "decimal": pa.array([Decimal(n) / 10 for n in numbers], pa.decimal128(20, 1)),
            "time": pa.array([datetime(2013, 1, 1, tzinfo=UTC)] * ROWS, pa.timestamp("us", "UTC")),
            "vector": pa.array(_some([[float(n)] * 4 for n in numbers]), pa.list_(pa.float32(), 4)),
        }
    )


def variable_width() -> pa.Table:
    """Text that is dictionary encoded and text that is not, with NULLs, and binary."""
    words = [f"word {n} {'x' * (n % 30)}" for n in range(ROWS)]
    few = pa.array(_some([f"city {n % 7}" for n in range(ROWS)]))
    return pa.table(
        {
            "few": few,
            "many": pa.array(_some(words)),
            "large": pa.array(words, pa.large_string()),
            "binary": pa.array([word.encode() for word in words], pa.binary()),
            "dictionary": few.dictionary_encode(),
        }
    )


def nested() -> pa.Table:
    """Lists, lists of lists, structs and packed structs."""
    lists = [[row, None, row + 1][: row % 4] for row in range(ROWS)]
    packed = pa.field(
        "packed", pa.struct([("x", pa.int32()), ("y", pa.float64())]), metadata={"packed": "true"}
    )
    columns = {
        "list": pa.array(_some(lists), pa.list_(pa.int32())),
        "lists": pa.array([[one, one] for one in lists], pa.list_(pa.list_(pa.int32()))),
        "texts": pa.array([[str(n)] * (n % 3) for n in range(ROWS)], pa.large_list(pa.string())),
        "struct": pa.array([{"a": n, "b": str(n)} for n in range(ROWS)]),
    }
    schema = pa.schema([pa.field(name, array.type) for name, array in columns.items()])
    struct_array = pa.array([{"x": n, "y": n / 2} for n in range(ROWS)], packed.type)
    return pa.table([*columns.values(), struct_array], schema=schema.append(packed))


TABLES = {"fixed": fixed_width, "variable": variable_width, "nested": nested}


@dataclass(frozen=True)
class Job:
    """What a child process damages, and through which reader it looks at the damage."""

    reader: str
    target: str
    files: dict[str, list[tuple[int, int]]]
    count: int


def data_file_regions(data: bytes) -> list[tuple[int, int]]:
    """Return pages, column metadata, offset tables and footer of a 2.0 file."""
    metadata, offsets, globals_ = struct.unpack_from("<QQQ", data, len(data) - 40)
    return [(0, metadata), (metadata, offsets), (offsets, globals_), (globals_, len(data))]


def manifest_regions(data: bytes) -> list[tuple[int, int]]:
    """Return what lies before the manifest, the manifest with its length, and the footer."""
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    regions = [(0, position), (position, len(data) - 16), (len(data) - 16, len(data))]
    return [(start, end) for start, end in regions if end > start]


def run_child(folder: Path, job: Job, plan: Path) -> dict[str, object]:
    """Let a child process try a job's mutants; returns its summary."""
    plan.write_text(json.dumps({**job.__dict__, "seed": SEED}))
    child = subprocess.run(
        [sys.executable, "-m", "tests.faults.mutants", str(folder), str(plan)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=400,
        check=False,
    )
    lines = child.stdout.splitlines()
    last = lines[-1] if lines else "none"
    assert child.returncode == 0, f"the child ended at {last}:\n{child.stderr[-3000:]}"
    summary: dict[str, object] = json.loads(last)
    return summary


def jobs(folder: Path) -> Iterator[Job]:
    """Write the tables and yield what is to be damaged of them."""
    for name, make in TABLES.items():
        uri = folder / f"{name}.lance"
        pennon.write_dataset(make(), str(uri), data_storage_version="2.0")
        (data,) = (uri / "data").iterdir()
        relative = str(data.relative_to(folder))
        regions = data_file_regions(data.read_bytes())
        yield Job("dataset", str(uri), {relative: regions}, MUTANTS_OF_A_DATA_FILE)
        yield Job("file", str(data), {relative: regions}, MUTANTS_OF_A_DATA_FILE)
    yield from _manifest_jobs(folder / "nested.lance", folder)


def _manifest_jobs(uri: Path, folder: Path) -> Iterator[Job]:
    (manifest,) = (uri / "_versions").glob("*.manifest")
    regions = manifest_regions(manifest.read_bytes())
    files = {str(manifest.relative_to(folder)): regions}
    yield Job("dataset", str(uri), files, MUTANTS_OF_A_MANIFEST)


def check(summary: dict[str, object], count: int, least_refused: float = LEAST_REFUSED) -> None:
    """Assert that all mutants were tried, and that each ended as it must."""
    print(summary["tried"], "tried,", summary["refused"], "refused")
    assert summary["tried"] == count
    refused = summary["refused"]
    assert isinstance(refused, int)
    assert refused >= count * least_refused, "the damage does not reach the reader"
    problems = summary["problems"]
    assert isinstance(problems, list)
    assert not problems, f"{len(problems)} mutants, the first: {json.dumps(problems[0], indent=1)}"
    over = summary["bytes_over_file"]
    assert isinstance(over, int)
    assert over <= SPARE_BYTES


@pytest.mark.parametrize("name", [*TABLES, "manifest"])
def test_damaged_tables_give_typed_errors_or_valid_rows(name: str, tmp_path: Path) -> None:
    mine = [job for job in jobs(tmp_path) if _name_of(job) == name]
    assert mine
    for job in mine:
        check(run_child(tmp_path, job, tmp_path / "plan.json"), job.count)


def _name_of(job: Job) -> str:
    (path,) = job.files
    return "manifest" if path.endswith(".manifest") else path.partition(".")[0]


@pytest.mark.parametrize("rows_deleted", [20, 6000])
def test_damaged_deletion_files_give_typed_errors_or_valid_rows(
    rows_deleted: int, tmp_path: Path
) -> None:
    """The oracle writes both kinds: an Arrow file for few rows, a Roaring bitmap for many."""
    script = (
        "import sys, lance, pyarrow as pa;"
        "ds = lance.write_dataset(pa.table({'a': range(8000)}), sys.argv[1],"
        " data_storage_version='2.0');"
        "ds.delete(f'a % 4 != 3 and a < {int(sys.argv[2]) * 4 // 3}')"
    )
    uri = tmp_path / "deleted.lance"
    subprocess.run([sys.executable, "-c", script, str(uri), str(rows_deleted)], check=True)
    (deletions,) = (uri / "_deletions").iterdir()
    assert deletions.suffix == (".arrow" if rows_deleted < 5000 else ".bin")
    size = deletions.stat().st_size
    files = {str(deletions.relative_to(tmp_path)): [(0, min(64, size)), (0, size)]}
    job = Job("dataset", str(uri), files, MUTANTS_OF_A_DELETION_FILE)
    check(run_child(tmp_path, job, tmp_path / "plan.json"), job.count)
