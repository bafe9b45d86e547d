"""Finding and reading versions."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from pennon.core.byte_ranges import ByteRange
from pennon.errors import FormatError, NotFoundError
from pennon.io import MemoryStore, open_store
from pennon.table.commit.clock import Clock
from pennon.table.commit.loop import commit
from pennon.table.commit.options import CommitOptions
from pennon.table.naming import Naming
from pennon.table.versions import (
    latest_location,
    latest_version,
    list_locations,
    list_versions,
    read_manifest,
    version_as_of,
)
from pennon.testing import CountingStore
from tests.unit.table.tables import append, create_table

HINT = "_versions/latest_version_hint.json"
START = datetime(2024, 5, 1, tzinfo=UTC)


def table(name: str, naming: Naming, versions: int = 12) -> MemoryStore:
    store = MemoryStore(name)
    create_table(store, naming=naming, clock=Clock(now_ns=lambda: at(1)))
    for version in range(1, versions):
        clock = Clock(now_ns=partial(at, version + 1))
        commit(store, append(version), CommitOptions(clock=clock))
    return store


def at(version: int) -> int:
    return int((START + timedelta(hours=version)).timestamp()) * 10**9


@pytest.mark.parametrize("naming", Naming)
def test_latest_version_is_found_with_any_version_hint(naming: Naming) -> None:
    store = table(f"latest{naming}", naming)
    for hint in (None, b'{"version":3}', b'{"version":99}', b"", b"\xff{"):
        if hint is not None:
            store.put(HINT, hint)
        assert latest_version(store) == 12
        assert read_manifest(store).version == 12
    for stray in ("d9223372036854775809.manifest", ".tmp_13.manifest_x", "13.manifest-x"):
        store.put(f"_versions/{stray}", b"rubbish")
    store.put("_versions/deeper/13.manifest", b"rubbish")
    store.put("_latest.manifest", b"rubbish")
    assert latest_version(store) == 12
    assert [at.version for at in list_locations(store)] == list(range(1, 13))


@pytest.mark.parametrize("naming", Naming)
def test_opening_costs_a_listing_and_one_read(naming: Naming) -> None:
    store = CountingStore(table(f"cost{naming}", naming))
    read_manifest(store)
    assert store.counts.rounds == 1
    store.reset()
    read_manifest(store, 7)
    assert store.counts.rounds == 1


def test_latest_version_of_mixed_naming_schemes() -> None:
    store = table("mixed", Naming.V2, 2)
    store.put(Naming.V1.manifest_path(1), b"x")
    assert latest_version(store) == 2
    assert [each.version for each in list_versions(store)] == [1, 2]
    body = store.read_whole(Naming.V2.manifest_path(2)).to_pybytes()
    store.put(Naming.V1.manifest_path(3), body)
    newest = latest_location(store)
    assert (newest.version, newest.naming, newest.is_mixed) == (3, Naming.V1, True)


@pytest.mark.parametrize("find", [latest_version, read_manifest, list_versions])
def test_missing_table_error_names_the_uri(find: object) -> None:
    with pytest.raises(NotFoundError, match="no Lance table at 'memory://nothing'"):
        find(MemoryStore("nothing"))  # type: ignore[operator]
    with pytest.raises(NotFoundError, match="no Lance table"):
        read_manifest(MemoryStore("nothing"), 1)


def test_missing_version_error_lists_the_range() -> None:
    store = table("absent", Naming.V2, 3)
    with pytest.raises(NotFoundError, match="there are 3 versions, 1 to 3"):
        read_manifest(store, 4)


def test_a_manifest_under_a_wrong_name() -> None:
    store = table("renamed", Naming.V1, 2)
    data = store.open(Naming.V1.manifest_path(1))
    (body,) = data.read([ByteRange(0, data.size_bytes)])
    store.put(Naming.V1.manifest_path(5), body.to_pybytes())
    with pytest.raises(FormatError, match="says that it is 1") as caught:
        read_manifest(store)
    assert caught.value.where.file == "_versions/5.manifest"


def test_version_as_of_a_time() -> None:
    store = table("asof", Naming.V2, 4)
    hour = timedelta(hours=1)
    assert version_as_of(store, START + hour) == 1
    assert version_as_of(store, START + 2.5 * hour) == 2
    assert version_as_of(store, (START + 3 * hour).astimezone()) == 3
    assert version_as_of(store, (START + 99 * hour).astimezone().replace(tzinfo=None)) == 4
    with pytest.raises(NotFoundError, match="oldest is of 2024-05-01T01"):
        version_as_of(store, START)


def test_version_history_equals_pylance(tmp_path: Path) -> None:
    root = str(tmp_path / "t.lance")
    rows = pa.table({"a": [1]})
    for mode in ("create", "append", "append"):
        lance.write_dataset(rows, root, mode=mode, data_storage_version="2.0")
    theirs = lance.dataset(root).versions()
    ours = list_versions(open_store(root))
    assert [v.version for v in ours] == [v["version"] for v in theirs] == [1, 2, 3]
    stamps = [v.timestamp.astimezone().replace(tzinfo=None) for v in ours]
    # pylance takes its nanoseconds through a float, which can move them by a microsecond.
    told: list[Any] = [v["timestamp"] for v in theirs]
    moved = [abs(mine - other) for mine, other in zip(stamps, told, strict=True)]
    assert max(moved) <= timedelta(microseconds=1)


def test_manifest_that_is_held_is_parsed_once_and_a_table_made_anew_at_its_path_is_another(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t"
    store = open_store(path)
    create_table(store, clock=Clock(now_ns=lambda: at(1)))
    held = read_manifest(store)
    assert read_manifest(open_store(path)) is held
    (file,) = (path / "_versions").glob("*.manifest")
    before, status = file.read_bytes(), file.stat()
    shutil.rmtree(path)
    create_table(store, clock=Clock(now_ns=lambda: at(2)))
    after = file.read_bytes()
    assert len(after) == len(before)
    file.write_bytes(before)
    assert read_manifest(store) is held
    file.write_bytes(
        after
    )  # as within one tick of the file system's clock: same inode, size and times
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    found = read_manifest(store)
    assert (held.timestamp, found.timestamp) == tuple(START + timedelta(hours=n) for n in (1, 2))
    assert read_manifest(store) is found
