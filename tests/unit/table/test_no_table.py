"""Errors for places without a table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pennon
from pennon.errors import NotFoundError

ROWS = pa.table({"a": [1]})


def test_open_of_other_files_names_their_kind(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "frames").mkdir()
    (tmp_path / "text").write_text("text")
    pq.write_table(ROWS, tmp_path / "frames" / "x.parquet")
    pq.write_table(ROWS, tmp_path / "unnamed")
    pennon.write_dataset(ROWS, tmp_path / "t.lance")
    file = next((tmp_path / "t.lance" / "data").iterdir())
    for name, hint in (
        ("none", "_versions/$"),
        ("empty", "_versions/$"),
        ("text", "a table is a folder"),
        ("frames", "this is Parquet"),
        ("frames/x.parquet", "this is Parquet"),
        ("unnamed", "this is Parquet"),
        ("t.lance/data", "inside of the table '.*t.lance'"),
        ("t.lance/_versions", "inside of the table '.*t.lance'"),
        (f"t.lance/data/{file.name}", "LanceFileReader"),
    ):
        with pytest.raises(NotFoundError, match=f"not found.*{hint}") as caught:
            pennon.dataset(tmp_path / name)
        assert isinstance(caught.value, ValueError)
    with pytest.raises(NotFoundError, match="not found"):
        pennon.dataset("memory://nothing-here")
