"""Facts of the ledger about files of pylance that reading alone would not show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.v2_1.encodings import Fsst
from pennon.encoding.v2_1.layouts import BlobPage, ConstantPage, FullZip, Layout, MiniBlock
from pennon.encoding.v2_1.wire import parse_page_layout
from tests.faults.files_2_1 import columns_of, table_of
from tests.faults.structure import layout_bytes, parts_of, regions_of
from tests.interop.oracle import Oracle, OracleError


@pytest.fixture
def written(newest: Oracle, tmp_path: Path) -> Any:
    """Return a function that lets the oracle write a column of `files_2_1`, and gives the bytes."""

    def write(name: str, version: str, table: pa.Table | None = None) -> bytes:
        path = tmp_path / f"{name}-{version}.lance"
        table = table_of(columns_of(version)[name]) if table is None else table
        newest.call("write_file", path=str(path), table=table, version=version)
        return path.read_bytes()

    return write


def _pages(data: bytes) -> list[tuple[Layout, Any]]:
    pages = [page for column in parts_of(data).columns for page in column.pages]
    return [(parse_page_layout(layout_bytes(page)), page) for page in pages]


def _buffer(data: bytes, page: Any, number: int) -> bytes:
    start = page.buffer_offsets[number]
    return data[start : start + page.buffer_sizes[number]]


def test_pylance_writes_2_2_by_default(newest: Oracle, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    newest.call("write", uri=path, table=pa.table({"a": [1]}))
    (data,) = (tmp_path / "t.lance" / "data").iterdir()
    assert parts_of(data.read_bytes()).version == (2, 2)


@pytest.mark.parametrize("batch_rows", [9_000, 700])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_limit_of_bytes_cuts_pages_at_2_0_only(
    newest: Oracle, version: str, batch_rows: int, tmp_path: Path
) -> None:
    pages = 72 if (version, batch_rows) == ("2.0", 9_000) else 1
    options = {"page_bytes": 1_000, "batch_rows": batch_rows, "data_storage_version": version}
    newest.write(tmp_path / "t.lance", pa.table({"a": range(9_000)}), **options)
    (data,) = (tmp_path / "t.lance" / "data").iterdir()
    (column,) = parts_of(data.read_bytes()).columns
    assert len(column.pages) == pages


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_chunks_are_padded_and_their_words_narrow_or_wide(written: Any, version: str) -> None:
    data = written("bools", version)
    ((layout, page),) = _pages(data)
    assert isinstance(layout, MiniBlock)
    assert layout.is_large == (version == "2.2")
    words = np.frombuffer(_buffer(data, page, 0), "<u4" if layout.is_large else "<u2")
    assert ((words >> 4).astype(int) + 1).sum() * 8 == page.buffer_sizes[1]
    assert words[-1] & 0xF == 0
    header = next(region for region in regions_of(data) if region.name == "chunk header")
    used = 2 + 2 + (4 if layout.is_large else 2)  # levels, size of the levels, size of the values
    assert header.end - header.start == -(-used // 8) * 8
    assert data[header.start + used : header.end] == b"\xfe" * (header.end - header.start - used)


def test_repetition_index_counts_rows_that_end_in_a_chunk(written: Any) -> None:
    data = written("lists", "2.1")
    ((layout, page),) = _pages(data)
    index = np.frombuffer(_buffer(data, page, 2), "<u8").reshape(-1, layout.index_depth + 1)
    assert layout.index_depth == 1
    assert index[:, 0].sum() == page.length
    assert index[-1, 1] == 0


@pytest.mark.parametrize("name", ["zip-text", "zip-lists"])
def test_the_row_index_of_full_zip_has_one_entry_more(written: Any, name: str) -> None:
    data = written(name, "2.1")
    ((layout, page),) = _pages(data)
    assert isinstance(layout, FullZip)
    width = page.buffer_sizes[1] // (page.length + 1)
    assert page.buffer_sizes[1] == width * (page.length + 1)
    entries = np.frombuffer(_buffer(data, page, 1), f"<u{width}")
    assert (entries[0], entries[-1]) == (0, page.buffer_sizes[0])


def test_null_of_fixed_width_has_its_bytes_in_full_zip(written: Any) -> None:
    data = written("zip-numbers", "2.1")
    ((_, page),) = _pages(data)
    assert page.buffer_sizes[0] == page.length * (1 + 4)
    assert len(page.buffer_sizes) == 1


def test_symbol_tables_are_of_one_size(written: Any) -> None:
    ((layout, _),) = _pages(written("fsst", "2.1"))
    assert isinstance(layout.values, Fsst)
    table = layout.values.symbol_table
    assert (len(table), table[4:8]) == (8 + 256 * 9, b"TSSF")


def test_null_blobs_hold_their_level_in_the_upper_half(written: Any) -> None:
    data = written("blobs", "2.1")
    ((layout, _),) = _pages(data)
    assert isinstance(layout, BlobPage)
    first = next(region for region in regions_of(data) if region.name == "values 0")
    rows = np.frombuffer(data[first.start : first.end], "<u8").reshape(-1, 2)
    nulls = rows[np.arange(len(rows)) % 5 == 2]
    assert (nulls == (1 << 16, 0)).all()


@pytest.mark.parametrize(("size", "inline"), [(1, True), (32, True), (33, False)])
def test_one_value_stands_in_the_layout_up_to_32_bytes(
    written: Any, size: int, *, inline: bool
) -> None:
    table = pa.table({"c": pa.array([b"x" * size] * 50, pa.binary(size))})
    data = written(f"same{size}", "2.2", table)
    ((layout, page),) = _pages(data)
    assert isinstance(layout, ConstantPage)
    assert (layout.value is not None) == inline
    if not inline:
        stored = _buffer(data, page, 0)
        assert stored == (1).to_bytes(4, "little") + size.to_bytes(4, "little") + b"x" * size


@pytest.mark.parametrize(
    ("key", "value"),
    [("rle-threshold", "much"), ("bss", "maybe"), ("dict-divisor", "x"), ("kompression", "zstd")],
)
def test_pylance_ignores_encoding_hints_with_invalid_values(
    written: Any, key: str, value: str
) -> None:
    array = pa.array(np.arange(3000) // 7)
    plain = pa.table({"c": array})
    field = pa.field("c", array.type, metadata={f"lance-encoding:{key}": value})
    wished = pa.table([array], schema=pa.schema([field]))
    pages = [_pages(written(key + kind, "2.1", t)) for kind, t in (("-", plain), ("+", wished))]
    assert pages[0][0][0] == pages[1][0][0]


@pytest.mark.parametrize(
    "wish",
    [{"compression": "zsdt"}, {"structural-encoding": "half-zip"}],
    ids=lambda w: next(iter(w)),
)
def test_pylance_refuses_unknown_encoding_names(written: Any, wish: dict[str, str]) -> None:
    array = pa.array(np.arange(3000) // 7)
    metadata = {f"lance-encoding:{key}": value for key, value in wish.items()}
    field = pa.field("c", array.type, metadata=metadata)
    with pytest.raises(OracleError):
        written("wished", "2.1", pa.table([array], schema=pa.schema([field])))
