"""`pennon.file` as users of ``lance.file`` know it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.rows import Rows
from pennon.errors import ArgumentError, NotFoundError
from pennon.file import LanceFileReader, LanceFileWriter
from pennon.file.facade import split_path

TABLE = pa.table({"a": range(1000), "s": [f"s{i}" for i in range(1000)]}).append_column(
    "n", pa.array([{"x": i, "y": [i]} for i in range(1000)])
)


@pytest.fixture
def path(tmp_path: Path) -> Any:
    path = tmp_path / "f.lance"
    with LanceFileWriter(path, TABLE.schema, version="2.0") as writer:
        writer.write_batch(TABLE)
    return path


def test_file_reader_reads_all_rows_in_batches(path: Path) -> None:
    reader = LanceFileReader(str(path))
    assert reader.num_rows() == 1000
    assert reader.read_all().to_table().equals(TABLE)
    sizes = [batch.num_rows for batch in reader.read_all(batch_size=300).to_batches()]
    assert sizes == [300, 300, 300, 100]


def test_batches_cross_windows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pennon.file.facade.WINDOW_BYTES", 1000)
    reader = LanceFileReader(path)
    batches = list(reader.read_all(batch_size=70).to_batches())
    assert [batch.num_rows for batch in batches] == [70] * 14 + [20]
    assert pa.Table.from_batches(batches).equals(TABLE)
    taken = reader.take_rows(range(1, 999, 2), batch_size=7).to_table()
    assert taken.equals(TABLE.take(pa.array(range(1, 999, 2))))


def test_read_range_and_take_rows(path: Path) -> None:
    reader = LanceFileReader(path, columns=["n.x", "a"])
    assert reader.read_range(5, 2).to_table().to_pylist() == [
        {"n": {"x": i}, "a": i} for i in (5, 6)
    ]
    assert reader.take_rows([3, 999]).to_table()["a"].to_pylist() == [3, 999]
    assert reader.take_rows([]).to_table().num_rows == 0
    assert reader.read_range(1000, 0).to_table().num_rows == 0


def test_file_reader_with_wrong_arguments_is_refused(path: Path) -> None:
    reader = LanceFileReader(path)
    for ask in (
        lambda: reader.read_range(999, 2),
        lambda: reader.read_range(-1, 1),
        lambda: reader.take_rows([1000]),
        lambda: reader.take_rows([-1]),
        lambda: reader.take_rows([2, 1]),
        lambda: reader.take_rows([1, 1]),
        lambda: reader.read_all(batch_size=0),
        lambda: reader.read_global_buffer(1),
        lambda: LanceFileReader(path, columns=[]),
    ):
        with pytest.raises(ArgumentError):
            ask()
    with pytest.raises(ArgumentError, match="zz"):
        LanceFileReader(path, columns=["zz"])
    with pytest.raises(NotFoundError):
        LanceFileReader(path.with_name("other.lance"))


def test_metadata_and_statistics(path: Path) -> None:
    reader = LanceFileReader(path)
    metadata = reader.metadata()
    assert metadata.schema == TABLE.schema
    assert (metadata.num_rows, metadata.major_version, metadata.minor_version) == (1000, 0, 3)
    assert [len(column.pages) for column in metadata.columns] == [1] * 6
    first = metadata.columns[0].pages[0]
    assert (first.buffers[0].position, first.buffers[0].size) == (0, 8000)
    assert "Flat" in first.encoding
    statistics = reader.file_statistics().columns
    assert (statistics[0].num_pages, statistics[0].size_bytes) == (1, 8000)
    assert statistics[1].size_bytes == 8000 + sum(map(len, TABLE["s"].to_pylist()))
    assert reader.read_global_buffer(0)


@pytest.mark.parametrize("version", ["2.0"])
def test_schema_from_the_first_batch(version: str | None, tmp_path: Path) -> None:
    writer = LanceFileWriter(tmp_path / "f.lance", version=version)
    writer.add_schema_metadata("early", "1")
    with pytest.raises(ArgumentError, match="Schema is unknown"):
        writer.add_global_buffer(b"x")
    writer.write_batch(TABLE.to_batches()[0])
    assert writer.add_global_buffer(b"xyz") == 1
    writer.add_schema_metadata("late", "2")
    assert (writer.close(), writer.close(), writer.closed) == (1000, None, True)
    reader = LanceFileReader(tmp_path / "f.lance")
    assert reader.read_global_buffer(1) == b"xyz"
    assert reader.metadata().schema.metadata == {b"early": b"1", b"late": b"2"}


def test_writer_without_schema_and_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="Schema is unknown"):
        LanceFileWriter(tmp_path / "f.lance").close()
    assert list(tmp_path.iterdir()) == []


def test_writer_block_with_exception_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyError), LanceFileWriter(tmp_path / "f.lance", TABLE.schema):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/a/b.lance", ("/a", "b.lance")),
        ("b.lance", (".", "b.lance")),
        ("/b.lance", ("/", "b.lance")),
        ("memory://x/a/b", ("memory://x/a", "b")),
    ],
)
def test_split_path_into_folder_and_name(path: Path, parts: Any) -> None:
    assert split_path(path) == parts


def test_window_of_ranges() -> None:
    rows = Rows.ranges(np.array([1, 10, 20]), np.array([4, 11, 25]))
    everything = rows.indices().tolist()
    for first in range(10):
        for end in range(first, 10):
            assert rows.window(first, end).indices().tolist() == everything[first:end]


def test_threads_share_a_writer(tmp_path: Path) -> None:
    """No batch of one thread ends up inside a table of another, nor do columns shift."""
    schema = pa.schema([(name, pa.int64()) for name in "abcdefgh"])
    tables = [
        pa.table({name: [number] * 40_000 for name in schema.names}, schema=schema)
        for number in range(8)
    ]
    path = tmp_path / "f.lance"
    with LanceFileWriter(path, schema) as writer, ThreadPoolExecutor(8) as threads:
        list(threads.map(writer.write_batch, tables))
    read = LanceFileReader(tmp_path / "f.lance").read_all().to_table()
    order = read["a"].to_numpy()[::40_000]
    assert sorted(order) == list(range(8))
    expected = np.repeat(order, 40_000)
    assert all((read[name].to_numpy() == expected).all() for name in schema.names)
