"""Spark's declarative pipelines: the blocks of docs/streams.md, run as the page says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from tests.documents import ROOT, blocks


def run(folder: Path) -> None:
    """Run the pipeline of a folder."""
    program = Path(sys.executable).with_name("spark-pipelines")
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [str(program), "run"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.slow
def test_pipeline_of_the_page_appends_each_batch_once(tmp_path: Path) -> None:
    (tmp_path / "transformations").mkdir()
    for block in blocks(ROOT / "docs" / "streams.md"):
        name, _, text = block.text.partition("\n")
        if name in ("# spark-pipeline.yml", "# transformations/lake.py"):
            for table in ("lake.lance", "events.lance"):
                text = text.replace(f'"{table}"', f'"{tmp_path / table}"')
            text = text.replace("storage: storage", f"storage: {(tmp_path / 'storage').as_uri()}")
            (tmp_path / name.removeprefix("# ")).write_text(text)
    events, lake = str(tmp_path / "events.lance"), str(tmp_path / "lake.lance")
    for number in range(2):
        pennon.write_dataset(
            pa.table({"id": range(10 * number, 10 * number + 10)}),
            events,
            mode="append" if number else "create",
        )
        run(tmp_path)
        found = sorted(pennon.dataset(lake).to_table()["id"].to_pylist())
        assert found == list(range(10 * number + 10))
