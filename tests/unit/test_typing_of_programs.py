"""mypy, strict, checks a user's program: right calls pass, and each misspelt name is found at its line.

The checker reads the package's own annotations, as it does in a user's project.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAD = """
from datetime import timedelta

import pyarrow as pa

import pennon
from pennon import LanceDataset
from pennon.dataset import ScannerBuilder, write_dataset
from pennon.fragment import write_fragments
from pennon.indices import IndexConfig

rows = pa.table({"id": [1, 2, 3], "text": ["a", "b", "c"]})
ds: LanceDataset = pennon.write_dataset(rows, "t.lance", mode="overwrite")
"""
RIGHT = """
ds = write_dataset(rows, ds, mode="append", max_rows_per_file=10, data_storage_version="2.1")
ds.insert(rows, mode="append", max_rows_per_file=10)
table = ds.to_table(columns=["id"], filter="id > 1", with_row_id=True, order_by=["id"])
table = ds.to_table(["id"], "id > 1", 10, 0, None, 100, 1 << 20, blob_handling="all_binary")
batches = list(ds.to_batches(columns={"twice": "id * 2"}, batch_size=10, fragments=ds.get_fragments("id > 1")))
frame = ds.to_pandas(columns=("id",), blob_mode="bytes", use_threads=True, types_mapper=None or (lambda kind: kind))
count: int = ds.count_rows("id > 1", use_scalar_index=False)
ds.create_scalar_index("id", "BTREE", replace=True, zone_size=4096)
ds.create_scalar_index("text", IndexConfig("INVERTED", {"with_position": True}))
ds.create_scalar_index("text", "INVERTED", name="words", with_position=True, language="English")
ds = ds.create_index("vec", "IVF_PQ", metric="cosine", num_partitions=2, num_sub_vectors=2, num_bits=8, seed=1)
result = ds.merge_insert("id").when_matched_update_all().write_mode("rewrite_rows").execute(rows)
inserted: int = result["num_inserted_rows"]
ds.optimize.compact_files(target_rows_per_fragment=100, compaction_mode="reencode")
ds.optimize.optimize_indices(num_indices_to_merge=1)
ds.cleanup_old_versions(older_than=timedelta(days=7))
found = ds.sql("SELECT id FROM dataset").with_row_id().build().to_stream_reader().read_all()
scan = ScannerBuilder(ds).columns(["id"]).filter("id > 1").limit(3).to_scanner()
fragment = ds.get_fragments()[0]
part = fragment.to_table(["id"], batch_size=10, with_row_address=True)
files = write_fragments(rows, "t.lance", mode="append")
old = pennon.dataset("t.lance", version=1, default_scan_options={"with_row_id": True})
stats = pennon.LanceDataset.commit(ds, pennon.LanceOperation.Append(files), read_version=1).stats
print(table, batches, frame, count, inserted, found, scan, part, old, stats, pennon.util.KMeans(2))
"""
WRONG = {
    "a column argument": ('ds.to_table(colums=["id"])', 'Unexpected keyword argument "colums"'),
    "columns that are one text": ('ds.to_table(columns="id")', 'Argument "columns" to "to_table"'),
    "columns of a scan": ('ds.scanner(colums=["id"])', 'Unexpected keyword argument "colums"'),
    "a filter": ('ds.to_batches(fliter="id > 1")', 'Unexpected keyword argument "fliter"'),
    "a filter of a count": ('ds.count_rows(fliter="x")', 'Unexpected keyword argument "fliter"'),
    "an option of head": ('ds.head(1, colums=["id"])', 'Unexpected keyword argument "colums"'),
    "an option of a fragment": (
        'ds.get_fragments()[0].to_table(colums=["id"])',
        'Unexpected keyword argument "colums"',
    ),
    "a mode": ('write_dataset(rows, ds, mode="apend")', 'Argument "mode" to "write_dataset"'),
    "a mode of an insert": ('ds.insert(rows, mode="apend")', 'Argument "mode" to "insert"'),
    "a mode of a merge": (
        'ds.merge_insert("id").write_mode("rewrite_row")',
        'Argument 1 to "write_mode"',
    ),
    "a mode of blobs": ('ds.to_pandas(blob_mode="byte")', 'Argument "blob_mode" to "to_pandas"'),
    "blob handling": (
        'ds.to_table(blob_handling="all_binaries")',
        'Argument "blob_handling" to "to_table"',
    ),
    "a metric": (
        'ds.create_index("vec", "IVF_PQ", metric="cosin")',
        'Argument "metric" to "create_index"',
    ),
    "a kind of vectors": ('ds.create_index("vec", "IVF_PG")', 'Argument 2 to "create_index"'),
    "a scalar kind": (
        'ds.create_scalar_index("id", "BTRE")',
        'Argument 2 to "create_scalar_index"',
    ),
    "a parameter of an index": (
        'ds.create_index("vec", "IVF_PQ", num_partition=2)',
        'Unexpected keyword argument "num_partition"',
    ),
    "a parameter of a text index": (
        'ds.create_scalar_index("text", "INVERTED", with_positon=True)',
        'Unexpected keyword argument "with_positon"',
    ),
    "an option of a write": (
        "write_dataset(rows, ds, max_rows_file=1)",
        'Unexpected keyword argument "max_rows_file"',
    ),
    "an option of an insert": (
        "ds.insert(rows, max_rows_file=1)",
        'Unexpected keyword argument "max_rows_file"',
    ),
    "an option of opening": (
        'pennon.dataset("t.lance", verison=1)',
        'Unexpected keyword argument "verison"',
    ),
    "an option of a compaction": (
        "ds.optimize.compact_files(target_rows_per_fragmen=3)",
        'Unexpected keyword argument "target_rows_per_fragmen"',
    ),
    "an option of indices": (
        "ds.optimize.optimize_indices(retrainn=True)",
        'Unexpected keyword argument "retrainn"',
    ),
    "a method": ("ds.to_tabel()", 'has no attribute "to_tabel"'),
    "a method of a fragment": (
        "ds.get_fragments()[0].to_tabel()",
        'has no attribute "to_tabel"',
    ),
    "a method of a scanner": ("ds.scanner().to_tabel()", 'has no attribute "to_tabel"'),
    "a method of a merge": (
        'ds.merge_insert("id").when_matched_update()',
        'has no attribute "when_matched_update"',
    ),
    "a method of a SQL query": (
        'ds.sql("SELECT 1").table_nam("t")',
        'has no attribute "table_nam"',
    ),
    "a class method": ("LanceDataset.comit(ds, None)", 'has no attribute "comit"'),
    "a name of the package": ("pennon.datset", 'has no attribute "datset"'),
    "a name of a module": ("pennon.util.KMean", 'has no attribute "KMean"'),
    "an operation": ("pennon.LanceOperation.Apend([])", 'has no attribute "Apend"'),
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """The errors of mypy in one program, by the numbers of its lines; the wrong calls are its last lines."""
    folder = tmp_path_factory.mktemp("program")
    wrong = "\n".join(call for call, _ in WRONG.values())
    (folder / "program.py").write_text(f"{HEAD}{RIGHT}{wrong}\n")
    cache = ROOT / ".mypy_cache" / "programs"
    with _alone(cache):
        run = _mypy(folder, cache)
    assert run.returncode == 1, run.stdout + run.stderr
    found: dict[int, str] = {}
    for line in run.stdout.splitlines():
        name, number, message = line.split(":", 2)
        if name == "program.py":
            found[int(number)] = found.get(int(number), "") + message
    return found


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """Wait until no other worker of these tests uses mypy's cache, which two processes must not write at once."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _mypy(folder: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--no-error-summary"),
            *("--config-file", os.devnull, "--cache-dir", str(cache), "--ignore-missing-imports"),
            *("--no-color-output", "--hide-error-context", "--follow-imports", "silent"),
            "program.py",
        ],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_type_checker_accepts_a_program_without_misspelt_names(errors: dict[int, str]) -> None:
    right = len(f"{HEAD}{RIGHT}".splitlines())
    assert {number: text for number, text in errors.items() if number <= right} == {}


@pytest.mark.parametrize("case", WRONG)
def test_type_checker_finds_a_misspelt_name(errors: dict[int, str], case: str) -> None:
    line = len(f"{HEAD}{RIGHT}".splitlines()) + 1 + list(WRONG).index(case)
    assert WRONG[case][1] in errors.get(line, "no error")
