"""File sessions: single files of one folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, FormatError, NotFoundError
from pennon.file import LanceFileSession, ListResult
from tests.unit.io.s3_server import BUCKET, serving_s3

ROWS = pa.table({"a": [1, 2], "b": ["x", "y"]})


def filled(session: LanceFileSession) -> LanceFileSession:
    """Write three files."""
    for path in ("a.lance", "sub/b.lance", "sub/deep/c.lance"):
        with session.open_writer(path, schema=ROWS.schema) as writer:
            writer.write_batch(ROWS)
    return session


@pytest.mark.parametrize("place", ["local", "memory"])
def test_session_lists_reads_and_deletes_files(tmp_path: Path, place: str) -> None:
    base = tmp_path / "files" if place == "local" else f"memory://sessions-{tmp_path.name}"
    session = filled(LanceFileSession(base))
    assert session.list() == ["a.lance", "sub/b.lance", "sub/deep/c.lance"]
    assert session.list("sub/") == ["sub/b.lance", "sub/deep/c.lance"]
    assert session.list("none") == []
    assert session.list_with_delimiter() == ListResult(["sub"], ["a.lance"])
    assert session.list_with_delimiter("sub") == ListResult(["sub/deep"], ["sub/b.lance"])
    assert session.open_reader("sub/b.lance", ["b"]).read_all().to_table() == ROWS.select(["b"])
    assert session.read_range("a.lance", 2, 0) == b""
    whole = session.read_range("a.lance", 0, 8)
    assert session.read_range("a.lance", 3, 4) == whole[3:7]
    session.delete_file("a.lance")
    assert not session.contains("a.lance")
    assert not session.contains("sub")
    assert session.contains("sub/b.lance")


def test_session_of_a_bucket_reads_and_writes() -> None:
    with serving_s3() as s3:
        session = filled(LanceFileSession(f"s3://{BUCKET}/files", s3.options))
        assert session.list("sub") == ["sub/b.lance", "sub/deep/c.lance"]
        assert session.open_reader("a.lance").num_rows() == 2
        assert session.list_with_delimiter("sub").common_prefixes == ["sub/deep"]


def test_session_copies_files_from_and_to_this_machine(tmp_path: Path) -> None:
    session = LanceFileSession(tmp_path / "files")
    data = bytes(range(256)) * 3
    (tmp_path / "here").write_bytes(data)
    session.upload_file(tmp_path / "here", "up/there")
    session.download_file("up/there", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == data
    with pytest.raises(FileNotFoundError):
        session.upload_file(tmp_path / "none", "x")
    with pytest.raises(NotFoundError):
        session.download_file("none", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_session_of_missing_files_and_ranges_raises(tmp_path: Path) -> None:
    session = filled(LanceFileSession(tmp_path))
    for action in (
        lambda: session.open_reader("none.lance"),
        lambda: session.read_range("none.lance", 0, 1),
        lambda: session.delete_file("none.lance"),
    ):
        with pytest.raises(OSError, match=r"none\.lance"):
            action()
    with pytest.raises(FormatError):
        session.read_range("a.lance", 0, 10**9)
    with pytest.raises(ArgumentError, match="0 or more"):
        session.read_range("a.lance", -1, 1)


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "a/../../secret", "%2e%2e/secret", ""]
)
def test_session_paths_stay_below_its_folder(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("secret")
    session = LanceFileSession(tmp_path / "files")
    for action in (
        lambda: session.open_reader(path),
        lambda: session.open_writer(path),
        lambda: session.read_range(path, 0, 1),
        lambda: session.delete_file(path),
        lambda: session.contains(path),
        lambda: session.upload_file(tmp_path / "secret", path),
        lambda: session.download_file(path, tmp_path / "copy"),
    ):
        with pytest.raises(FormatError):
            action()
    if path != "" and not path.startswith("/"):
        with pytest.raises(FormatError):
            session.list(path)
    assert (tmp_path / "secret").read_text() == "secret"


def test_session_of_a_table_reads_its_data_files(tmp_path: Path) -> None:
    table = pennon.write_dataset(ROWS, tmp_path / "t.lance")
    session = table.new_file_session()
    (file,) = session.list("data")
    assert session.open_reader(file).read_all().to_table() == ROWS


def test_data_file_of_some_columns_replaces_them(tmp_path: Path) -> None:
    table = pennon.write_dataset(ROWS, tmp_path / "t.lance")
    table.add_columns({"c": "a * 2"})
    with table.new_file_session().open_writer(
        "data/new.lance", version=table.data_storage_version
    ) as writer:
        writer.write_batch(pa.table({"c": [7, 8]}))
    file = pennon.fragment.DataFile.create(table, "new.lance")
    assert file.field_ids == file.fields == [2]
    group = pennon.LanceOperation.DataReplacementGroup(0, file)
    replacement = pennon.LanceOperation.DataReplacement([group])
    new = pennon.LanceDataset.commit(table.uri, replacement, read_version=table.version)
    assert new.to_table()["c"].to_pylist() == [7, 8]


def test_data_file_that_does_not_fit_its_table_is_refused(tmp_path: Path) -> None:
    table = pennon.write_dataset(ROWS, tmp_path / "t.lance")
    with pytest.raises(OSError, match=r"none\.lance"):
        pennon.fragment.DataFile.create(table, "none.lance")
    with table.new_file_session().open_writer("data/other.lance") as writer:
        writer.write_batch(pa.table({"other": [7, 8]}))
    with pytest.raises(ValueError, match=r"other\.lance"):
        pennon.fragment.DataFile.create(table, "other.lance")


def test_counters_of_reads_grow_with_ranges_and_bytes(tmp_path: Path) -> None:
    session = filled(LanceFileSession(tmp_path))
    ranges, size_bytes = pennon.iops_counter(), pennon.bytes_read_counter()
    session.read_range("a.lance", 0, 10)
    assert pennon.iops_counter() == ranges + 1
    assert pennon.bytes_read_counter() == size_bytes + 10
