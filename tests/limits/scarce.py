"""Programs of `test_scarce`, each in its own process with few resources.

python -m tests.limits.scarce cycles FOLDER COUNT     many small rounds of everything
python -m tests.limits.scarce files FOLDER            64 open files at most
python -m tests.limits.scarce memory FOLDER MIB       so much address space beyond what there is
"""

from __future__ import annotations

import contextlib
import gc
import json
import resource
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import pennon
from pennon.errors import LanceError

WARM_CYCLES = 100
"""Rounds after which what a process keeps has been made: pools, caches, modules."""


def rows(start: int, count: int) -> pa.Table:
    """Return rows with numbers, texts and lists."""
    numbers = range(start, start + count)
    texts = [None if n % 7 == 0 else f"text {n}" for n in numbers]
    return pa.table({"n": list(numbers), "t": texts, "l": [[n, None] for n in numbers]})


def resident_bytes() -> int:
    """Return what this process holds in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def open_files() -> int:
    """Return how many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def cycles(folder: str, count: str) -> dict[str, Any]:
    """Open, scan, filter, take and commit, again and again; tell what the process held, and when."""
    uri = f"{folder}/t"
    pennon.write_dataset(rows(0, 50), uri)
    held: list[tuple[int, int]] = []
    for number in range(int(count)):
        dataset = pennon.dataset(uri)
        assert dataset.to_table().num_rows == 50
        assert dataset.to_table(filter="n >= 0").num_rows == 50
        assert dataset.take([3, 40]).num_rows == 2
        if number % 3 == 0:
            dataset.delete(f"n % 50 = {number % 50}")
        elif number % 3 == 1:
            dataset.update({"t": "'x'"}, where="n % 5 = 1")
        pennon.write_dataset(rows(50 * number, 50), uri, mode="overwrite")
        if number % 100 == 99:
            pennon.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
        if number + 1 in (WARM_CYCLES, int(count)):
            del dataset
            gc.collect()
            held.append((resident_bytes(), open_files()))
    return {"held": held}


def files(folder: str) -> dict[str, Any]:
    """Read, change and compact a table of more files than may be open."""
    uri = f"{folder}/t"
    for start in range(0, 3000, 30):
        pennon.write_dataset(rows(start, 30), uri, mode="append")
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    dataset = pennon.dataset(uri)
    assert dataset.to_table().num_rows == 3000
    assert dataset.to_table(filter="n % 2 = 0").num_rows == 1500
    assert dataset.take(list(range(0, 3000, 31))).num_rows == 97
    dataset.delete("n % 3 = 0")
    dataset.optimize.compact_files()
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)
    return {"rows": pennon.dataset(uri).count_rows(), "open": open_files()}


def memory(folder: str, headroom_mib: str) -> dict[str, Any]:
    """Scan, take and change with little address space left; what fails has a type, and loses nothing."""
    uri = f"{folder}/t"
    dataset = pennon.write_dataset(rows(0, 400_000), uri, max_rows_per_file=50_000)
    dataset.to_table(filter="n > 5").num_rows  # noqa: B018 - what is loaded late is loaded now
    (size,) = (
        line for line in Path("/proc/self/status").read_text().splitlines() if "VmSize" in line
    )
    bound = int(size.split()[1]) * 1024 + (int(headroom_mib) << 20)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (bound, most))
    failed = []

    def compact() -> None:
        pennon.dataset(uri).optimize.compact_files()

    steps: list[Any] = [
        lambda: sum(batch.num_rows for batch in pennon.dataset(uri).to_batches(batch_size=8192)),
        lambda: pennon.dataset(uri).to_table(filter="n % 100 = 0").num_rows,
        lambda: pennon.dataset(uri).take(list(range(0, 400_000, 1000))).num_rows,
        lambda: pennon.dataset(uri).delete("n % 1000 = 1"),
        lambda: pennon.write_dataset(rows(400_000, 1000), uri, mode="append"),
        compact,
    ]
    for step in steps:
        try:
            step()
        except (LanceError, MemoryError, pa.ArrowMemoryError) as error:
            failed.append(type(error).__name__)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    pennon.dataset(uri).validate()
    found = pennon.dataset(uri).to_table(columns=["n"])["n"].to_pylist()
    return {"failed": failed, "rows": len(found), "distinct": len(set(found))}


if __name__ == "__main__":
    with contextlib.suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
