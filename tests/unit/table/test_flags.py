"""Feature flags: refused at open, refused at writing, computed anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pennon.core.units import DatasetVersion
from pennon.errors import ArgumentError, UnsupportedError
from pennon.io import MemoryStore
from pennon.table import flags
from pennon.table.commit.loop import commit
from pennon.table.fragment import DeletionFileRef, DeletionKind
from pennon.table.manifest import DataFormat, Manifest
from pennon.table.manifest_wire import serialize_manifest_file
from pennon.table.naming import Naming
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore
from tests.unit.table.tables import SCHEMA, append, create_table, new_fragment

DELETION = DeletionFileRef(DeletionKind.ARROW, 1, 5, 2)


def store_with(name: str, manifest: Manifest) -> MemoryStore:
    store = MemoryStore(name)
    path = Naming.V2.manifest_path(manifest.version)
    store.put(path, serialize_manifest_file(manifest))
    return store


@pytest.mark.parametrize("flag", [64, 128, 1 << 20, 1 << 63])
def test_unknown_reader_flags_are_refused(flag: int) -> None:
    manifest = Manifest(SCHEMA, DatasetVersion(1), reader_flags=flag | 1)
    store = CountingStore(store_with(f"reader{flag}", manifest))
    with pytest.raises(UnsupportedError, match=f"cannot read.*{flag}") as caught:
        read_manifest(store)
    assert caught.value.where.file == Naming.V2.manifest_path(1)
    with pytest.raises(UnsupportedError):
        read_manifest(store, 1)
    with pytest.raises(UnsupportedError):
        commit(store, append(1))


@pytest.mark.parametrize("flag", [64, 1 << 20, 1 << 63])
def test_unknown_writer_flags_are_refused_at_commit(flag: int) -> None:
    manifest = Manifest(SCHEMA, DatasetVersion(1), writer_flags=flag)
    store = store_with(f"writer{flag}", manifest)
    assert read_manifest(store).writer_flags == flag
    with pytest.raises(UnsupportedError, match=f"not write to it.*{flag}"):
        commit(store, append(1))
    assert [info.path for info in store.list("")] == [Naming.V2.manifest_path(1)]


@pytest.mark.parametrize("flag", [0, 1, 4, 8, 16, 32, 256, 1 | 4 | 8 | 16 | 32 | 256])
def test_known_flags_are_readable_and_writable(flag: int) -> None:
    flags.check_readable(flag)
    flags.check_writable(Manifest(SCHEMA, DatasetVersion(1), reader_flags=flag, writer_flags=flag))


def test_flags_follow_the_contents() -> None:
    plain = new_fragment()
    deleted = replace(plain, deletion_file=DELETION)
    with_ids = replace(plain, row_ids=b"")
    blank = Manifest(SCHEMA, DatasetVersion(1), reader_flags=1 << 50, writer_flags=1 << 51)

    def masks(manifest: Manifest, *, stable: bool = False, file: bool = True) -> tuple[int, int]:
        done = flags.with_flags(manifest, stable_row_ids=stable, transaction_file=file)
        return done.reader_flags, done.writer_flags

    assert masks(blank) == (0, 0)
    assert masks(replace(blank, fragments=(plain, deleted))) == (1, 1)
    assert masks(replace(blank, fragments=(with_ids,))) == (2, 2)
    assert masks(replace(blank, fragments=(plain, new_fragment(minor=1)))) == (256, 256)
    old = replace(plain, files=(replace(plain.files[0], major=0, minor=2),))
    assert masks(replace(blank, fragments=(plain, old))) == (0, 0)
    assert masks(replace(blank, data_format=DataFormat("lance", "2.1"))) == (0, 0)
    for stated, mask in (("2.0", 0), ("2.1", 256), ("0.1", 0)):
        said = replace(blank, data_format=DataFormat("lance", stated), fragments=(plain,))
        assert masks(said) == (mask, mask)
    assert masks(blank, stable=True) == (2, 2)
    assert masks(replace(blank, config={"a": "b"})) == (0, 8)
    assert masks(blank, file=False) == (0, 32)
    with pytest.raises(ArgumentError, match="all fragments"):
        masks(replace(blank, fragments=(plain, with_ids)))


def test_flag_without_transaction_file_is_obeyed_and_preserved() -> None:
    store = MemoryStore("flag32")
    first = create_table(store)
    before = {info.path for info in store.list("_transactions")}
    asked = replace(first, writer_flags=32, version=DatasetVersion(2))
    store.put(Naming.V2.manifest_path(2), serialize_manifest_file(asked))
    manifest = commit(store, append(2))
    assert manifest.writer_flags == 32
    assert manifest.transaction_file is None
    assert manifest.transaction is not None
    assert {info.path for info in store.list("_transactions")} == before
