"""A table of a hundred thousand fragments: opened, appended to, looked through for compaction."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.core.units import DatasetVersion, FragmentId
from pennon.io import open_store
from pennon.table.manifest import Manifest
from pennon.table.manifest_wire import serialize_manifest_file
from pennon.table.naming import Naming
from pennon.table.versions import read_manifest

FRAGMENTS = 100_000
LIMIT_BYTES = 500_000_000

CHILD = """
import json, sys
import pyarrow as pa
import pennon
from pennon.optimize import Compaction
from tests.limits.peak import peak_bytes

uri = sys.argv[1]
table = pennon.dataset(uri)
rows = table.count_rows()
made = pennon.write_dataset(pa.table({"n": [7]}), uri, mode="append")
last = made.get_fragment(made.snapshot.manifest.last_fragment_id)
tasks = Compaction.plan(made, {"target_rows_per_fragment": 100_000}).num_tasks()
print(json.dumps({
    "peak": peak_bytes(), "rows": rows, "after": made.count_rows(), "tasks": tasks,
    "fragments": len(made.get_fragments()), "last": last.to_table()["n"].to_pylist(),
}))
"""


def with_fragments(manifest: Manifest, count: int) -> Manifest:
    """Return the next version of a table, with so many fragments whose files are not there."""
    (real,) = manifest.fragments
    (file,) = real.files
    many = [
        replace(
            real,
            id=FragmentId(number),
            files=(replace(file, path=f"{number:024b}{number:026x}.lance"),),
            physical_rows=1000,
        )
        for number in range(count)
    ]
    return replace(
        manifest,
        version=DatasetVersion(manifest.version + 1),
        fragments=many,
        max_fragment_id=count - 1,
        transaction=None,
        transaction_file=None,
    )


@pytest.mark.slow
def test_many_fragments_are_read_within_the_memory_limit(tmp_path: Path) -> None:
    uri = str(tmp_path / "many")
    pennon.write_dataset(pa.table({"n": [1]}), uri)
    store = open_store(uri)
    manifest = with_fragments(read_manifest(store), FRAGMENTS)
    store.put(Naming.V2.manifest_path(2), serialize_manifest_file(manifest))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, uri], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("peak") < LIMIT_BYTES
    assert found == {
        "rows": 1000 * FRAGMENTS,
        "after": 1000 * FRAGMENTS + 1,
        "tasks": 1000,
        "fragments": FRAGMENTS + 1,
        "last": [7],
    }
