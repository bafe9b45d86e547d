"""Tables of very many fragments: how long it takes to open one, and to append to it.

Run by hand: ``python bench/many_fragments.py [FRAGMENTS]``.  Only the manifest has so many fragments;
nobody reads their files, which are not there.  Each step is a child process, Pennon's and pylance's in
turns, and the least of several turns counts; peaks are those of the whole process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

import pennon
from pennon.core.units import DatasetVersion, FragmentId
from pennon.io import open_store
from pennon.table.manifest_wire import serialize_manifest_file
from pennon.table.naming import Naming
from pennon.table.versions import read_manifest

FRAGMENTS = 100_000
TURNS = 5
_CHILD = """
import json, resource, sys, time
library, uri, step = sys.argv[1:]
if library == "pennon":
    import pennon as lance
else:
    import lance
import pyarrow as pa
lance.write_dataset(pa.table({"n": [1]}), uri + ".small", mode="overwrite").count_rows()  # imports
started = time.perf_counter()
if step == "open":
    table = lance.dataset(uri)
elif step == "count":
    table = lance.dataset(uri)
    table.count_rows()
else:
    lance.write_dataset(pa.table({"n": [1], "s": ["x"]}), uri, mode="append")
ended = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"seconds": ended - started, "peak_bytes": peak}))
"""


def make_table(uri: str, fragments: int) -> None:
    """Make a table whose manifest names so many fragments of 1,000 rows, in two columns."""
    pennon.write_dataset(pa.table({"n": [1], "s": ["x"]}), uri)
    store = open_store(uri)
    first = read_manifest(store)
    (real,) = first.fragments
    (file,) = real.files
    many = [
        replace(
            real,
            id=FragmentId(number),
            files=(replace(file, path=f"{number:024b}{number:026x}.lance", size_bytes=12_345),),
            physical_rows=1000,
        )
        for number in range(fragments)
    ]
    second = replace(
        first,
        version=DatasetVersion(2),
        fragments=many,
        max_fragment_id=fragments - 1,
        transaction=None,
        transaction_file=None,
    )
    store.put(Naming.V2.manifest_path(2), serialize_manifest_file(second))


def measure(library: str, uri: str, step: str) -> tuple[float, int]:
    """Return seconds and peak bytes of one step in a process of its own."""
    command = [sys.executable, "-c", _CHILD, library, uri, step]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return found["seconds"], found["peak_bytes"]


def main(fragments: int) -> None:
    """Print a line for each step and library."""
    with tempfile.TemporaryDirectory() as folder:
        uri = str(Path(folder) / "many.lance")
        make_table(uri, fragments)
        for step in ("open", "count", "append"):
            found: dict[str, list[tuple[float, int]]] = {"pennon": [], "pylance": []}
            for _ in range(TURNS):
                for library, each in found.items():
                    each.append(measure(library, uri, step))
            for library, each in found.items():
                seconds = min(seconds for seconds, _ in each)
                peak = min(peak for _, peak in each) / 1e6
                print(
                    f"{fragments:,} fragments, {step:6} {library:8} {seconds:6.3f} s {peak:5.0f} MB"
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else FRAGMENTS)
