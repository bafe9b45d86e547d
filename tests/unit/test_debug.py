"""Tables as text for people who look for a fault."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.debug import format_fragment, format_manifest, format_schema, list_transactions

ROWS = pa.table({"id": [1, 2], "point": [{"x": 1.0, "name": "a"}] * 2})


def test_debug_schema_shows_ids_parents_and_types() -> None:
    text = format_schema(pennon.write_dataset(ROWS, "memory://debug-schema/t.lance"))
    assert text.startswith("Schema {\n    fields: [\n        Field {\n")
    field = 'name: "x",\n                    id: 2,\n                    parent_id: 1,\n'
    assert field in text
    assert 'logical_type: LogicalType(\n                        "double",' in text


def test_debug_manifest_and_transactions_show_every_operation(tmp_path: Path) -> None:
    table = pennon.write_dataset(ROWS, tmp_path / "t.lance")
    table.delete("id = 1")
    table.create_scalar_index("id", "BTREE")
    table.add_columns({"twice": "id * 2"})
    text = format_manifest(table)
    assert 'library: "pennon"' in text
    assert "deletion_file: Some(\n                DeletionFileRef {" in text
    shown = list_transactions(table)
    operations = [each.partition("operation: ")[2].partition(" ")[0] for each in shown]
    assert operations == ["Merge", "CreateIndex", "Delete", "Overwrite"]
    assert list_transactions(table, 2) == shown[:2]
    assert not any("_Struct" in each or "frozenset" in each for each in (text, *shown))


def test_debug_fragment_shows_the_fields_of_each_file() -> None:
    table = pennon.write_dataset(ROWS, "memory://debug-fragment/t.lance")
    table.add_columns({"twice": "id * 2"})
    text = format_fragment(table.get_fragments()[0].metadata, table)
    first, second = text.split("PrettyPrintableDataFile {")[1:]
    assert '"twice"' in second
    assert '"twice"' not in first
    with pytest.raises(TypeError, match="takes a FragmentMetadata"):
        format_fragment(table.get_fragments()[0], table)
