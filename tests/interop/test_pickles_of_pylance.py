"""Objects that pylance pickled are read under its name: drivers and workers may have different libraries."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa

READ = """
import pickle, sys
import lance
found = pickle.load(sys.stdin.buffer)
fragment, schema, table = found["fragment"], found["schema"], found["table"]
assert type(fragment) is lance.FragmentMetadata, type(fragment)
assert fragment.files[0].path.endswith(".lance"), fragment
assert [field.name() for field in schema.fields()] == ["id", "point"], schema
assert schema.to_pyarrow().metadata == {b"k": b"v"}
assert (table.version, table.count_rows()) == (1, 3)
made = lance.LanceDataset.commit(table.uri, found["append"], read_version=2)
print(made.count_rows(), type(found["append"]).__module__)
"""


def test_pickles_of_pylance_are_read_and_committed_by_pennon(tmp_path: Path) -> None:
    points = pa.array([{"x": 1.0}, {"x": 2.0}, None], pa.struct([("x", pa.float64())]))
    rows = pa.table({"id": [1, 2, 3], "point": points}).replace_schema_metadata({"k": "v"})
    table = lance.write_dataset(rows, tmp_path / "t.lance")
    lance.write_dataset(rows, tmp_path / "t.lance", mode="append")
    fragments = lance.fragment.write_fragments(rows, tmp_path / "t.lance")
    found = {
        "fragment": table.get_fragments()[0].metadata,
        "schema": table.lance_schema,
        "table": table,
        "append": lance.LanceOperation.Append(fragments),
    }
    run = subprocess.run(
        [sys.executable, "-m", "pennon.as_lance", "-c", READ],
        input=pickle.dumps(found),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    assert run.stdout.split() == [b"9", b"pennon.dataset.operation"], run.stderr.decode()
