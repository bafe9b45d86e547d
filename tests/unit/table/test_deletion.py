"""Deletion files of both kinds, of Pennon and of pylance."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from pennon.core.units import FragmentId
from pennon.errors import FormatError, NotFoundError, TooLargeError
from pennon.io import MemoryStore, open_store
from pennon.table.deletion import (
    parse_deletions,
    read_deletions,
    serialize_deletions,
    write_deletions,
)
from pennon.table.fragment import DeletionFileRef, DeletionKind, Fragment
from pennon.table.versions import read_manifest
from tests.unit.table.tables import new_fragment

OLD = Path(__file__).parent / "old_releases"


def ipc(batch: pa.RecordBatch, times: int = 1) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        for _ in range(times):
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def fragment_with(store: MemoryStore, data: bytes, stated: int | None, rows: int = 100) -> Fragment:
    deletion = DeletionFileRef(DeletionKind.ARROW, 1, 9, stated)
    fragment = replace(new_fragment(rows), deletion_file=deletion)
    store.put(deletion.store_path(fragment.id), data)
    return fragment


def row_ids(values: list[int | None], *, nullable: bool = False) -> pa.RecordBatch:
    schema = pa.schema([pa.field("row_id", pa.uint32(), nullable=nullable)])
    return pa.record_batch([pa.array(values, pa.uint32())], schema=schema)


def bomb(rows: int) -> bytes:
    """Return a deletion file of so many zeros."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    schema = row_ids([]).schema
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        writer.write_batch(pa.record_batch([np.zeros(rows, np.uint32)], schema=schema))
    data: bytes = sink.getvalue().to_pybytes()
    return data


@pytest.mark.parametrize("claimed", [100, 1 << 32])
def test_a_small_file_of_many_rows_is_not_decompressed(claimed: int) -> None:
    store = MemoryStore()
    fragment = fragment_with(store, bomb(40_000_000), None, claimed)
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(TooLargeError, match="40000000 deleted rows in 160000000 bytes"):
            read_deletions(store, fragment)
    finally:
        pa.set_memory_pool(usual)
    assert (pool.max_memory() or 0) < 1 << 20


def test_a_small_bitmap_of_many_rows_is_not_unfolded() -> None:
    store = MemoryStore()
    runs = struct.pack("<HHBHHHHH", 12347, 0, 1, 0, 65535, 1, 0, 65535)
    deletion = DeletionFileRef(DeletionKind.BITMAP, 1, 9, None)
    fragment = replace(new_fragment(100), deletion_file=deletion)
    store.put(deletion.store_path(fragment.id), runs)
    with pytest.raises(TooLargeError, match="65536 values, more than 100"):
        read_deletions(store, fragment)


@pytest.mark.parametrize(("dead", "kind"), [(40, DeletionKind.ARROW), (9000, DeletionKind.BITMAP)])
def test_deletion_files_of_pylance_are_read(tmp_path: Path, dead: int, kind: DeletionKind) -> None:
    root = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"a": range(20000)}), root, data_storage_version="2.0")
    lance.dataset(root).delete(f"a % 2 = 1 AND a < {2 * dead}")
    store = open_store(root)
    (fragment,) = read_manifest(store).fragments
    assert fragment.deletion_file is not None
    assert fragment.deletion_file.kind is kind
    assert fragment.num_rows == 20000 - dead
    assert read_deletions(store, fragment).tolist() == list(range(1, 2 * dead, 2))


@pytest.mark.parametrize("dead", [1, 5000, 5001, 20000])
def test_deletion_files_of_pennon_are_read_by_pylance(tmp_path: Path, dead: int) -> None:
    root = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"a": range(20000)}), str(root), data_storage_version="2.0")
    lance.dataset(str(root)).delete("a = 0" if dead <= 5000 else "a % 2 = 0")
    store = open_store(root)
    (fragment,) = read_manifest(store).fragments
    theirs = fragment.deletion_file
    offsets = np.arange(dead, dtype=np.uint32)[::-1]
    ours = write_deletions(store, fragment.id, 1, offsets)
    assert theirs is not None
    assert ours is not None
    assert (ours.kind, ours.num_deleted_rows) == (theirs.kind, dead)
    path = root / theirs.store_path(fragment.id)
    path.write_bytes((root / ours.store_path(fragment.id)).read_bytes())
    values = lance.dataset(str(root)).to_table()["a"].to_pylist()
    assert values == list(range(dead, 20000))


def test_deletion_file_of_old_release_without_counts() -> None:
    store = open_store(OLD / "v0.8.0/migrated_from_v0.7.5")
    fragment = read_manifest(store).fragments[0]
    assert fragment.num_rows is None
    assert len(read_deletions(store, fragment)) == 10


def test_fragment_without_deletions() -> None:
    store = MemoryStore("none")
    assert read_deletions(store, new_fragment()).tolist() == []
    assert write_deletions(store, FragmentId(1), 1, np.empty(0, np.uint32)) is None
    assert list(store.list("")) == []


@pytest.mark.parametrize("kind", DeletionKind)
def test_deletion_files_round_trip(kind: DeletionKind) -> None:
    offsets = np.array([0, 5, 70000], np.uint32)
    data = serialize_deletions(offsets, kind)
    assert parse_deletions(pa.py_buffer(data), kind).tolist() == [0, 5, 70000]


def test_deletion_file_with_unordered_and_repeated_rows() -> None:
    store = MemoryStore("order")
    fragment = fragment_with(store, ipc(row_ids([9, 1, 5, 1])), 3)
    assert read_deletions(store, fragment).tolist() == [1, 5, 9]


def without_message_sizes(file: bytes) -> bytes:
    """Return an Arrow file in which every message in front of the footer says that it is the last."""
    mark = b"\xff\xff\xff\xff"
    before, *messages = file.split(mark)
    return before + b"".join(mark + bytes(4) + message[4:] for message in messages)


@pytest.mark.parametrize(
    ("data", "stated", "says"),
    [
        (ipc(row_ids([1, 2])), 3, "manifest says 3"),
        (ipc(row_ids([1, 100])), 2, "row 100"),
        (ipc(row_ids([1, None], nullable=True)), None, "null"),
        (ipc(row_ids([1]), times=2), None, "one batch"),
        (ipc(pa.record_batch({"row_id": [1]})), None, "row_id: uint32"),
        (ipc(pa.record_batch({"a": [1], "b": [2]})), None, "row_id: uint32"),
        (b"", None, "Arrow"),
        (b"ARROW1\0\0" + b"\xff" * 40, None, "Arrow"),
        (ipc(row_ids([1, 2]))[:-20], None, "Arrow"),
        (without_message_sizes(ipc(row_ids([1, 2]))), None, "Arrow"),
    ],
)
def test_damaged_deletion_file_error_names_the_file(
    data: bytes, stated: int | None, says: str
) -> None:
    store = MemoryStore("damage")
    fragment = fragment_with(store, data, stated)
    with pytest.raises(FormatError, match=says) as caught:
        read_deletions(store, fragment)
    assert caught.value.where.file == "_deletions/0-1-9.arrow"


def test_a_lost_file_and_another_base() -> None:
    deletion = DeletionFileRef(DeletionKind.BITMAP, 1, 2**64 - 1, 1)
    fragment = replace(new_fragment(), deletion_file=deletion)
    with pytest.raises(NotFoundError) as caught:
        read_deletions(MemoryStore("lost"), fragment)
    assert caught.value.where.file == f"_deletions/0-1-{2**64 - 1}.bin"
    elsewhere = replace(fragment, deletion_file=replace(deletion, base_id=3))
    with pytest.raises(NotFoundError) as caught:
        read_deletions(MemoryStore("lost"), elsewhere)
    assert caught.value.where.file == f"@3/_deletions/0-1-{2**64 - 1}.bin"
