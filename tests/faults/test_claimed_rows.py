"""A manifest that claims far more rows than there are costs neither memory nor time."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import FormatError
from pennon.io import open_store
from pennon.table.fragments import Fragments
from pennon.table.manifest_wire import serialize_manifest_file
from pennon.table.row_ids.encode_wire import encode_one_version, encode_row_id_range
from pennon.table.versions import latest_location, read_manifest

CLAIMED = 1 << 26

READS: dict[str, Callable[[pennon.LanceDataset], object]] = {
    "inserted": lambda t: t.delta(begin_version=0, end_version=1).get_inserted_rows().read_all(),
    "updated": lambda t: t.delta(begin_version=0, end_version=1).get_updated_rows().read_all(),
    "ids": lambda t: t.scanner(columns=[], with_row_id=True).to_table(),
    "id filter": lambda t: t.to_table(filter="_rowid = 5", with_row_id=True),
    "rows": lambda t: t.to_table(),
}


@pytest.mark.parametrize("name", READS)
def test_manifest_with_false_row_counts_is_refused_before_allocation(
    name: str, tmp_path: Path
) -> None:
    rows = pa.table({"a": [1, 2, 3]})
    pennon.write_dataset(rows, tmp_path / "t", enable_stable_row_ids=True)
    store = open_store(str(tmp_path / "t"))
    manifest = read_manifest(store)
    (fragment,) = manifest.fragments
    lying = replace(
        fragment,
        physical_rows=CLAIMED,
        row_ids=encode_row_id_range(0, CLAIMED),
        created_at_versions=encode_one_version(1, CLAIMED),
        last_updated_at_versions=encode_one_version(1, CLAIMED),
    )
    body = serialize_manifest_file(replace(manifest, fragments=Fragments.of([lying])))
    store.put(latest_location(store).path, body)
    table = pennon.dataset(tmp_path / "t")
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=f"has {CLAIMED} rows, but a data file of it 3"):
            READS[name](table)
        assert tracemalloc.get_traced_memory()[1] < CLAIMED
    finally:
        tracemalloc.stop()
