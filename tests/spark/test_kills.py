"""A merge on a cluster that loses an executor when files are written: each row once, one version."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import lance

from tests.spark.kills import ROWS

ROOT = Path(__file__).parents[2]


def test_a_merge_outlives_an_executor(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.spark.kills", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert (seen["killed"], seen["version_before"]) == (1, 1)
    assert seen["orphans"] > 0
    deleted = ROWS // 10
    assert seen["counts"] == [ROWS // 2, ROWS // 2, deleted]
    table = lance.dataset(str(tmp_path / "table.lance"))
    table.validate()
    assert table.version == 2
    rows = {row["id"]: row["v"] for row in table.to_table().to_pylist()}
    kept = {n: n for n in range(1, ROWS, 2) if n % 5}
    assert rows == kept | {2 * n: -n for n in range(ROWS)}
    assert table.count_rows() == len(rows)
