"""The rows that changed between two versions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import pennon


def test_delta_ignores_default_scan_options(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"a": [1, 2], "b": [3, 4]})
    pennon.write_dataset(rows, uri, enable_stable_row_ids=True)
    pennon.write_dataset(rows, uri, mode="append")
    table = pennon.dataset(uri, default_scan_options={"columns": ["b"], "limit": 1})
    found = table.delta(begin_version=1, end_version=2).get_inserted_rows().read_all()
    assert found.select(["a", "b"]) == rows
