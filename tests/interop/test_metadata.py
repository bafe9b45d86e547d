"""The metadata of a data file equals, field by field, that of pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance.file import LanceFileReader as TheirReader
from lance.file import LanceFileWriter as TheirWriter

from pennon.file import LanceFileReader, LanceFileWriter
from tests.interop.test_encodings_2_1 import FORCED, ROWS, _field

NUMBERS = [
    "num_rows",
    "num_data_bytes",
    "num_column_metadata_bytes",
    "num_global_buffer_bytes",
    "major_version",
    "minor_version",
]


def buffers(found: Any) -> list[tuple[int, int]]:
    return [(buffer.position, buffer.size) for buffer in found]


def check(path: Path) -> None:
    """Compare metadata and statistics of a file."""
    ours, theirs = LanceFileReader(path), TheirReader(str(path))
    mine, other = ours.metadata(), theirs.metadata()
    assert [getattr(mine, n) for n in NUMBERS] == [getattr(other, n) for n in NUMBERS]
    assert mine.schema.equals(other.schema, check_metadata=True)
    assert buffers(mine.global_buffers) == buffers(other.global_buffers)
    for my_column, their_column in zip(mine.columns, other.columns, strict=True):
        assert buffers(my_column.column_buffers) == buffers(their_column.column_buffers)
        for my_page, their_page in zip(my_column.pages, their_column.pages, strict=True):
            assert buffers(my_page.buffers) == buffers(their_page.buffers)
            assert my_page.encoding == their_page.encoding
    assert repr(mine) == repr(other)
    assert repr(ours.file_statistics()) == repr(theirs.file_statistics())
    assert [(c.num_pages, c.size_bytes) for c in ours.file_statistics().columns] == [
        (c.num_pages, c.size_bytes) for c in theirs.file_statistics().columns
    ]


def everything() -> pa.Table:
    numbers = list(range(3_000))
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    columns = {
        pa.field("number", pa.int32()): pa.array(numbers, pa.int32()),
        pa.field("gaps", pa.int64()): pa.array([i if i % 3 else None for i in numbers]),
        pa.field("nothing", pa.int64()): pa.nulls(len(numbers), pa.int64()),
        pa.field("word", pa.string()): pa.array([f"row {i}" for i in numbers]),
        pa.field("few", pa.string()): pa.array([f"w{i % 5}" for i in numbers]),
        pa.field("list", pa.list_(pa.int32())): pa.array([[1] * (i % 3) for i in numbers]).cast(
            pa.list_(pa.int32())
        ),
        blob: pa.array([b"x" * 70] * len(numbers), pa.large_binary()),
    }
    schema = pa.schema(list(columns), metadata={"of": "the schema"})
    return pa.table(list(columns.values()), schema=schema)


@pytest.mark.parametrize("name", FORCED)
def test_file_metadata_of_each_encoding_equals_pylance(name: str, tmp_path: Path) -> None:
    case = FORCED[name]
    array = case.make(ROWS)
    table = pa.table([array], schema=pa.schema([_field(case, array)]))
    for version in case.versions:
        path = tmp_path / f"{version}.lance"
        with TheirWriter(str(path), table.schema, version=version) as writer:
            writer.write_batch(table)
        check(path)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("rows", [0, 1, 3_000])
def test_file_metadata_of_pylance_file_equals_pylance(
    version: str, rows: int, tmp_path: Path
) -> None:
    table = everything().slice(0, rows)
    path = tmp_path / "x.lance"
    with TheirWriter(str(path), table.schema, version=version, data_cache_bytes=4_096) as writer:
        writer.add_schema_metadata("more", "of it")
        writer.write_batch(table)
        writer.add_global_buffer(b"seven b")
    check(path)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("rows", [0, 1, 3_000])
def test_file_metadata_of_pennon_file_equals_pylance(
    version: str, rows: int, tmp_path: Path
) -> None:
    table = everything().slice(0, rows)
    path = tmp_path / "x.lance"
    with LanceFileWriter(path, table.schema, version=version, data_cache_bytes=4_096) as writer:
        writer.write_batch(table)
        writer.add_global_buffer(b"seven b")
    check(path)
