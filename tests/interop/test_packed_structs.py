"""Packed structs, which have one column for all fields: projections of some fields."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import lance
import pyarrow as pa
import pytest

import pennon

PACKED = pa.field(
    "packed",
    pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.int64())]),
    metadata={"packed": "true", "lance-encoding:packed": "true"},
)
ROWS = pa.table(
    {"packed": pa.array([{"a": i, "b": 2 * i} for i in range(9)], PACKED.type)},
    schema=pa.schema([PACKED]),
)


@pytest.mark.parametrize("version", ["2.0", "2.1"])
@pytest.mark.parametrize("writer", [pennon, lance])
def test_a_field_of_a_packed_struct(tmp_path: Path, writer: ModuleType, version: str) -> None:
    uri = str(tmp_path / "t.lance")
    writer.write_dataset(ROWS, uri, data_storage_version=version)
    table = pennon.dataset(uri)
    found = table.to_table(filter="packed.a > 3")
    assert found.to_pylist() == ROWS.to_pylist()[4:]
    assert found.equals(lance.dataset(uri).to_table(filter="packed.a > 3"))
    shown = table.to_table(columns=["packed.b"], filter="packed.a > 6").to_pydict()
    assert shown == {"packed.b": [14, 16]}
    assert table.to_table(columns=["packed.b"])["packed.b"].to_pylist() == list(range(0, 18, 2))
    taken = table.take([8, 0], columns=["packed.a"])
    assert taken.to_pylist() == [{"packed": {"a": 8}}, {"packed": {"a": 0}}]
    assert table.count_rows("packed.a = 3 and packed.b = 6") == 1
