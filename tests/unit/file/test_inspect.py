from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.encoding.v2_0.encodings import BufferRef, Flat, SomeNulls
from pennon.file.container.file import DataFile
from pennon.file.container.page_report import describe
from pennon.file.container.write_limits import PageLimits
from pennon.file.inspect import (
    NamedRange,
    explain_pages,
    explain_row_groups,
    inspect_file,
    inspect_pages,
)
from pennon.file.open import create_container_file, open_data_file
from pennon.io import open_store
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V2_0, V2_1, FileVersion

ROWS = 3_000


def every_kind() -> pa.Table:
    """One column of each encoding that file version 2.0 writes."""
    numbers = pa.array(range(ROWS), pa.int32())
    words = pa.array([f"row {i}" for i in range(ROWS)])
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    packed = pa.field(
        "packed",
        pa.struct([("x", pa.int32()), ("y", pa.float32())]),
        metadata={"packed": "true"},
    )
    fields = {
        pa.field("number", pa.int32()): numbers,
        pa.field("gaps", pa.int64()): pa.array([i if i % 3 else None for i in range(ROWS)]),
        pa.field("nothing", pa.int64()): pa.nulls(ROWS, pa.int64()),
        pa.field("flag", pa.bool_()): pa.array([i % 2 == 0 for i in range(ROWS)]),
        pa.field("word", pa.string()): words,
        pa.field("few", pa.string()): pa.array([f"w{i % 5}" for i in range(ROWS)]),
        pa.field("list", pa.list_(pa.int32())): pa.array(
            [[1] * (i % 3) for i in range(ROWS)], pa.list_(pa.int32())
        ),
        pa.field("vector", pa.list_(pa.float32(), 4)): pa.FixedSizeListArray.from_arrays(
            pa.array(np.arange(ROWS * 4, dtype=np.float32)), 4
        ),
        packed: pa.array([{"x": i, "y": 0.5} for i in range(ROWS)], packed.type),
        blob: pa.array([b"x" * 70] * ROWS, pa.large_binary()),
    }
    return pa.table(list(fields.values()), schema=pa.schema(list(fields)))


def write_ours(table: pa.Table, folder: Path, version: FileVersion = V2_0) -> str:
    sink, schema = open_store(folder).open_writer("ours.lance"), schema_from_arrow(table.schema)
    writer = create_container_file(sink, schema, version, limits=PageLimits(cache_bytes=4_096))
    for batch in table.to_batches(max_chunksize=1_000):
        writer.write(batch)
    writer.add_global_buffer(b"something of the writer's own")
    writer.finish()
    return "ours.lance"


def write_pylance(table: pa.Table, folder: Path) -> str:
    lance.write_dataset(table, folder / "t", data_storage_version="2.0")
    (file,) = (folder / "t" / "data").iterdir()
    return str(file.relative_to(folder))


@pytest.fixture(params=[write_ours, write_pylance])
def ranges(request: pytest.FixtureRequest, tmp_path: Path) -> list[NamedRange]:
    write: Callable[[pa.Table, Path], str] = request.param
    source = open_store(tmp_path).open(write(every_kind(), tmp_path))
    found = inspect_file(source)
    assert found[-1].end == source.size_bytes
    return found


def test_the_ranges_tile_the_file(ranges: list[NamedRange]) -> None:
    assert ranges[0].start == 0
    for before, after in pairwise(ranges):
        assert before.end == after.start


def test_inspect_assigns_every_byte_to_a_range(ranges: list[NamedRange]) -> None:
    assert {each.kind for each in ranges} == {
        "page buffer",
        "blob values",
        "padding",
        "global buffer",
        "column metadata",
        "column table",
        "buffer table",
        "footer",
    }
    assert not [each for each in ranges if "not named" in each.detail]


def test_padding_is_shorter_than_the_alignment(ranges: list[NamedRange]) -> None:
    assert all(each.size_bytes < 64 for each in ranges if each.kind == "padding")


def test_inspect_names_buffers_by_column_and_use(ranges: list[NamedRange]) -> None:
    details = [each.detail for each in ranges if each.kind == "page buffer"]
    for column, use in [
        ("number", "values"),
        ("gaps", "validity"),
        ("word", "bytes"),
        ("few", "items.bytes"),
        ("list", "offsets"),
        ("list.item", "values"),
        ("packed", "values"),
    ]:
        assert any(d.startswith(f"{column}, page 0") and f": {use}" in d for d in details), column


def test_an_encoding_on_one_line() -> None:
    encoding = SomeNulls(Flat(1, BufferRef(0)), Flat(64, BufferRef(1)))
    assert describe(encoding) == "SomeNulls(Flat(1), Flat(64))"


def test_a_file_of_2_1_has_no_byte_without_an_owner(tmp_path: Path) -> None:
    source = open_store(tmp_path).open(write_ours(every_kind(), tmp_path, V2_1))
    found = inspect_file(source)
    assert (found[0].start, found[-1].end) == (0, source.size_bytes)
    assert all(before.end == after.start for before, after in pairwise(found))
    assert {each.kind for each in found} == {
        "chunk table",
        "chunks",
        "dictionary",
        "repetition index",
        "blob values",
        "padding",
        "global buffer",
        "column metadata",
        "column table",
        "buffer table",
        "footer",
    }


def test_the_metadata_of_one_column_is_damaged(tmp_path: Path) -> None:
    """The others are explained all the same."""
    path = tmp_path / write_ours(every_kind(), tmp_path, V2_1)
    whole = inspect_file(open_store(tmp_path).open(path.name))
    metadata = [each for each in whole if each.kind == "column metadata"]
    data = bytearray(path.read_bytes())
    data[metadata[1].start : metadata[1].end] = b"\xff" * metadata[1].size_bytes
    path.write_bytes(data)
    damaged = inspect_file(open_store(tmp_path).open(path.name))
    (said,) = [each for each in damaged if "unreadable" in each.detail]
    assert (said.start, said.end, said.kind) == (
        metadata[1].start,
        metadata[1].end,
        "column metadata",
    )
    others = [each for each in whole if each.kind == "chunks" and "gaps" not in each.detail]
    assert set(others) <= set(damaged)


def test_the_chunks_of_a_page_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / write_ours(every_kind(), tmp_path, V2_1)
    whole = inspect_pages(open_store(tmp_path).open(path.name))
    number = [page.column for page in whole.pages].index("gaps")
    table = whole.pages[number].parts[0].extent
    data = bytearray(path.read_bytes())
    data[table.position : table.end] = b"\xff" * table.size_bytes
    path.write_bytes(data)
    damaged = inspect_pages(open_store(tmp_path).open(path.name))
    assert any("chunks unreadable: " in fact for fact in damaged.pages[number].facts)
    assert damaged.pages[:number] == whole.pages[:number]
    assert damaged.pages[number + 1 :] == whole.pages[number + 1 :]
    unread = inspect_pages(open_store(tmp_path).open(path.name), chunks=False)
    assert not any("unreadable" in fact for page in unread.pages for fact in page.facts)


def test_inspect_reports_gaps_without_blobs_as_unclaimed(tmp_path: Path) -> None:
    """One column's pages are hidden, so that nothing claims what they have."""
    path = tmp_path / write_ours(every_kind(), tmp_path, V2_1)
    whole = inspect_file(open_store(tmp_path).open(path.name))
    (metadata,) = [
        each for each in whole if each.kind == "column metadata" and each.detail.startswith("word:")
    ]
    data = bytearray(path.read_bytes())
    data[metadata.start : metadata.end] = b"\xff" * metadata.size_bytes
    path.write_bytes(data)
    hidden = [each for each in whole if each.kind == "chunks" and each.detail.startswith("word,")]
    damaged = inspect_file(open_store(tmp_path).open(path.name))
    for chunks in hidden:
        (found,) = [each for each in damaged if each.start <= chunks.start < each.end]
        assert (found.kind, found.detail) == ("unclaimed", "")
    assert {each for each in damaged if each.kind == "blob values"} == {
        each for each in whole if each.kind == "blob values"
    }


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_pages_of_one_column_are_explained_as_those_of_the_file(
    tmp_path: Path, version: str
) -> None:
    table = pa.table({"id": range(5000), "word": [f"w{n}" for n in range(5000)]})
    pennon.write_dataset(table, tmp_path / "t", data_storage_version=version)
    store = open_store(str(tmp_path / "t" / "data"))
    (name,) = (each.name for each in (tmp_path / "t" / "data").iterdir())
    expected = [
        page
        for page in inspect_pages(store.open(name), chunks=False).pages
        if page.column == "word"
    ]
    file = open_data_file(store.open(name))
    if isinstance(file, DataFile):
        assert explain_pages(file, 1, "word", 1000) == expected
        assert explain_pages(file, 1, "word", 1) == expected[:1]
    else:
        assert [each for each in explain_row_groups(file) if each.column == "word"] == expected
