"""Counts of deleted rows that a manifest states wrongly: no living row may be hidden."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import FormatError
from pennon.io import open_store
from pennon.table.manifest import Manifest
from pennon.table.manifest_wire import serialize_manifest_file
from pennon.table.versions import latest_location, read_manifest

ASKS: dict[str, Callable[[pennon.LanceDataset], object]] = {
    "scan": lambda table: table.to_table(),
    "filtered": lambda table: table.to_table(filter="a >= 0"),
    "limit": lambda table: table.to_table(limit=2, offset=3),
    "count": lambda table: table.count_rows(),
    "take": lambda table: table.take([0, 1, 2]),
    "compaction": lambda table: table.optimize.compact_files(),
    "delete all": lambda table: table.delete("true"),
    "validate": lambda table: table.validate(),
}


def _stating(uri: str, deleted: int) -> None:
    """State that so many rows of the second fragment are deleted; one of two is."""
    store = open_store(uri)
    manifest: Manifest = read_manifest(store)
    first, second = manifest.fragments
    deletion = second.deletion_file
    assert deletion is not None
    changed = replace(second, deletion_file=replace(deletion, num_deleted_rows=deleted))
    damaged = replace(manifest, fragments=(first, changed))
    Path(uri, latest_location(store).path).write_bytes(serialize_manifest_file(damaged))


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1"])
@pytest.mark.parametrize("deleted", [2, 3, 2**40])
def test_too_high_deleted_row_counts_are_refused(
    tmp_path: Path, version: str, deleted: int
) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"a": [0, 1, 2, 3]})
    pennon.write_dataset(rows, uri, max_rows_per_file=2, data_storage_version=version)
    pennon.dataset(uri).delete("a = 2")
    _stating(uri, deleted)
    for ask in ASKS.values():
        with pytest.raises(FormatError, match="the deletion file holds 1 rows"):
            ask(pennon.dataset(uri))
