"""The small table that tests of `LanceTable` change, and how it looks to pylance."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa

import pennon

ROWS = [("a", 1), ("b", 2), ("c", 3), ("d", 4)]


def make(uri: str, **options: Any) -> None:
    """A table of two fragments."""
    rows = pa.table(
        {"key": [k for k, _ in ROWS], "value": pa.array([v for _, v in ROWS], pa.int64())}
    )
    pennon.write_dataset(rows, uri, max_rows_per_file=2, **options)


def rows_of(uri: str) -> list[tuple[Any, ...]]:
    """The rows as pylance reads them, which also looks the table through."""
    table = lance.dataset(uri)
    table.validate()
    rows = table.to_table()
    return sorted(zip(*rows.to_pydict().values(), strict=True), key=repr)


def clauses(builder: Any) -> Any:
    """Give a merge a clause of each kind."""
    return (
        builder.whenMatchedUpdate("k = 'a'", {"value": "v + 0"})
        .whenMatchedDelete("k = 'b'")
        .whenNotMatchedInsert("k = 'e'", {"key": "k", "value": "v + 0"})
        .whenNotMatchedBySourceUpdate("key = 'c'", {"value": "value * 2"})
        .whenNotMatchedBySourceDelete("key = 'd'")
    )
