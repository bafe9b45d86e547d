"""Blobs: lazy reads, and damaged descriptions."""

from __future__ import annotations

import multiprocessing
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.blob import BlobFile
from pennon.core.units import FieldId
from pennon.dataset.lance_dataset import LanceDataset
from pennon.errors import FormatError, NotFoundError, UntrustedPathError
from pennon.io import MemoryStore, open_store
from pennon.scan.run.blobs import BlobRange, BlobSource, locate_blobs, sidecar_path
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Field
from pennon.table.fragment import DataFileRef
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore

LARGE = bytes(range(256)) * 8000
FIELD = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
TABLE = pa.table(
    [range(200), pa.array([LARGE] * 200, pa.large_binary())],
    schema=pa.schema([pa.field("i", pa.int64()), FIELD]),
)


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_blob_bytes_are_read_lazily(version: str, tmp_path: Path) -> None:
    pennon.write_dataset(TABLE, tmp_path / "t", data_storage_version=version)
    store = CountingStore(open_store(tmp_path / "t"))
    table = LanceDataset.of_snapshot("t", Snapshot(store, read_manifest(store)))
    files = table.take_blobs("b", indices=[150, 3, 150])
    assert store.counts.read_bytes < 200_000
    store.reset()
    file = files[0]
    assert file is not None
    assert file.size() == len(LARGE)
    assert not store.counts.verbs
    file.seek(1_000_000)
    read = b"".join(file.read(100) for _ in range(100))
    assert read == LARGE[1_000_000:1_010_000]
    assert (store.counts.requests, store.counts.read_bytes) == (1, 512 * 1024)
    assert file.read_ranges([(5, 7), (900_000, 3)]) == [LARGE[5:12], LARGE[900_000:900_003]]
    assert (store.counts.rounds, store.counts.read_bytes) == (2, 512 * 1024 + 10)
    store.reset()
    assert [data for _, data in table.read_blobs("b", indices=[7, 9])] == [LARGE, LARGE]
    assert store.counts.read_bytes < 2 * len(LARGE) + 100_000
    assert store.counts.rounds <= 3


def _first_bytes(file: BlobFile) -> bytes:
    return file.read(10)


def test_files_travel_to_other_processes(tmp_path: Path) -> None:
    table = pennon.write_dataset(TABLE.slice(0, 3), tmp_path / "t")
    (file,) = table.take_blobs("b", indices=[1])
    assert file is not None
    assert file.read(3) == LARGE[:3]
    assert pickle.loads(pickle.dumps(file)).read() == LARGE
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(_first_bytes, (file,)) == LARGE[:10]
    assert file.tell() == 3


def _snapshot(tmp_path: Path) -> Snapshot:
    return pennon.write_dataset(TABLE.slice(0, 2), tmp_path / "t").snapshot


def _description(**parts: Any) -> pa.Array:
    whole = {"kind": 0, "position": 0, "size": 1, "blob_id": 1, "blob_uri": "", **parts}
    kinds = [pa.uint8(), pa.uint64(), pa.uint64(), pa.uint32(), pa.string()]
    return pa.array([whole], pa.struct(list(zip(whole, kinds, strict=True))))


V2 = Field("b", FieldId(1), "struct", metadata={"ARROW:extension:name": b"lance.blob.v2"})


@pytest.mark.parametrize(
    "parts",
    [
        {"position": 1 << 62},
        {"size": 1 << 63},
        {"position": (1 << 64) - 1, "size": (1 << 64) - 1},
        {"size": 1 << 40},
    ],
)
def test_blob_ranges_outside_their_file_are_refused(parts: dict[str, int], tmp_path: Path) -> None:
    snapshot = _snapshot(tmp_path)
    for field in (V2, snapshot.manifest.schema.fields[1]):
        (blob,) = locate_blobs(snapshot, field, [0], _description(**parts))
        assert blob is not None
        for read in (lambda file: file.read(), lambda file: file.read(5)):
            with pytest.raises(FormatError, match="leaves its file"):
                read(BlobFile(blob))


def test_kinds_of_blobs(tmp_path: Path) -> None:
    snapshot = _snapshot(tmp_path)
    with pytest.raises(FormatError, match="unknown kind 9"):
        locate_blobs(snapshot, V2, [0], _description(kind=9))
    strict = pennon.dataset(tmp_path / "t", trusted_bases=[]).snapshot
    passwords = _description(kind=3, blob_id=0, blob_uri="file:///etc/passwd")
    with pytest.raises(UntrustedPathError, match="names files in '/etc', outside of its own root"):
        locate_blobs(strict, V2, [0], passwords)
    for parts, why in (
        ({"blob_id": 4}, "no base path 4"),
        ({"blob_id": 0, "blob_uri": "../x"}, "must be an absolute URI"),
        ({"blob_id": 0, "blob_uri": "/etc/passwd"}, "must be an absolute URI"),
    ):
        with pytest.raises(FormatError, match=why):
            locate_blobs(snapshot, V2, [0], _description(kind=3, **parts))
    with pytest.raises(FormatError, match="no data file has"):
        locate_blobs(snapshot, replace(V2, id=FieldId(7)), [0], _description())
    (blob,) = locate_blobs(snapshot, V2, [0], _description(kind=1))
    assert blob is not None
    with pytest.raises(NotFoundError):
        BlobFile(blob).read()


def test_blob_sidecar_paths() -> None:
    ref = DataFileRef("x.lance", (), (), 2, 2, 10)
    assert sidecar_path(ref, 1) == "data/x/10000000000000000000000000000000.blob"
    assert sidecar_path(ref, 6) == "data/x/01100000000000000000000000000000.blob"


def test_empty_blob_opens_no_file() -> None:
    missing = BlobRange(BlobSource(MemoryStore("no blobs"), "data/none.lance", None), 0, 0)
    assert BlobFile(missing).read() == b""
    assert BlobFile(missing).readinto(bytearray(5)) == 0
