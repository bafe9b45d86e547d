"""Converted tables, read by pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.io import open_store
from pennon.ops.convert import convert, plan_convert
from pennon.schema.version import FileVersion
from tests.interop.equality import difference
from tests.interop.oracle import Oracle

OF_ROWS: list[str] = ["n", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.mark.parametrize(
    ("version", "to"),
    [
        ("0.1", "2.1"),
        ("2.0", "2.1"),
        ("2.1", "2.0"),
        ("2.2", "2.1"),
        ("2.1", "2.2"),
        ("0.1", "2.2"),
    ],
)
def test_converted_table_is_read_by_pylance(
    newest: Oracle, version: str, to: str, tmp_path: Path
) -> None:
    """The oracle writes and deletes, Pennon converts; where rows have stable ids, these stay."""
    uri, rows = tmp_path / "t", 500
    table = pa.table({"n": range(rows), "t": [str(n) for n in range(rows)], "l": [[1]] * rows})
    options: dict[str, Any] = {"data_storage_version": version, "max_rows_per_file": 150}
    is_stable = version != "0.1"
    newest.write(uri, table, **options, enable_stable_row_ids=is_stable)
    newest.call("delete", uri=str(uri), predicate="n % 5 = 2")
    newest.write(uri, table.slice(0, 20), **options, mode="append")
    whole = newest.scan(uri)
    wanted = newest.scan(uri, columns=OF_ROWS) if is_stable else None
    convert(plan_convert(open_store(uri), FileVersion.parse(to)))
    assert pennon.dataset(uri).data_storage_version == to
    assert difference(newest.scan(uri), whole) is None
    assert difference(pennon.dataset(uri).to_table(), whole) is None
    if wanted is not None:
        assert newest.scan(uri, columns=OF_ROWS).equals(wanted)
        assert pennon.dataset(uri).to_table(columns=OF_ROWS).equals(wanted)
