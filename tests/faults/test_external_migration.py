"""Commits through a manifest store to a table whose manifests get their names of scheme V2."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pennon.errors import AlreadyExistsError, StoreError
from pennon.io.store import Store
from pennon.table.commit.loop import commit
from pennon.table.commit.migrate_naming import migrate_to_v2
from pennon.table.external import Entry
from pennon.table.naming import Naming
from pennon.table.versions import latest_version, list_versions
from pennon.testing import WrappedStore
from tests.faults.external_table import COMMIT, SECOND, Table
from tests.unit.table.tables import append


@pytest.mark.parametrize("steps", [2, 3, 4, 5])
def test_external_table_migrates_to_v2_names(steps: int) -> None:
    table = Table(Naming.V1)
    commit(table.store, append(1))
    old = Naming.V1.manifest_path(2)
    staged = Entry(2, f"{old}-0000")
    if steps < 5:
        table.objects.put(staged.path, table.objects.read_whole(old).to_pybytes())
        table.manifests.entries[2] = staged
    if steps < 4:
        table.objects.delete(old)
    assert migrate_to_v2(table.store) == 2
    assert commit(table.store, append(2)).version == latest_version(table.store) == 3
    paths = [Naming.V2.manifest_path(version) for version in (3, 2, 1)]
    assert [path for path in table.files() if path.endswith(".manifest")] == paths
    assert [table.manifests.entries[version].path for version in (3, 2, 1)] == paths
    assert [summary.version for summary in list_versions(table.store)] == [1, 2, 3]


def test_external_commit_after_migration_outside_the_manifest_store() -> None:
    table = Table(Naming.V1)
    migrate_to_v2(table.objects)
    assert latest_version(table.store) == 1
    assert commit(table.store, append(1)).version == 2
    assert table.manifests.entries[2].path == SECOND


class Meanwhile(WrappedStore):
    """Does something right before an entry is added."""

    def __init__(self, inner: Store, act: Callable[[], object]) -> None:
        super().__init__(inner)
        self.act = act

    def before(self, verb: str, path: str) -> None:
        if verb == COMMIT:
            self.act()


def test_external_commit_finds_own_version_renamed_by_a_migration() -> None:
    """The entry has the old name still, under which nothing lies."""
    table = Table(Naming.V1)
    commit(table.store, append(1))
    ours = table.objects.read_whole(Naming.V1.manifest_path(2)).to_pybytes()
    store = table.seen_through(Meanwhile(table.objects, lambda: migrate_to_v2(table.objects)))
    store.put_if_absent(SECOND, ours)
    assert table.manifests.entries[2].path == SECOND
    assert table.objects.read_whole(SECOND).to_pybytes() == ours


def test_external_commit_loses_to_a_version_renamed_by_a_migration() -> None:
    table = Table(Naming.V1)
    commit(table.store, append(1))
    theirs = table.objects.read_whole(Naming.V1.manifest_path(2)).to_pybytes()
    store = table.seen_through(Meanwhile(table.objects, lambda: migrate_to_v2(table.objects)))
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent(SECOND, b"another manifest")
    assert table.objects.read_whole(SECOND).to_pybytes() == theirs


def test_external_commit_raises_for_own_version_without_manifest() -> None:
    table = Table(Naming.V1)
    commit(table.store, append(1))
    old = Naming.V1.manifest_path(2)
    ours = table.objects.read_whole(old).to_pybytes()
    store = table.seen_through(Meanwhile(table.objects, lambda: table.objects.delete(old)))
    with pytest.raises(StoreError, match="its manifest is gone"):
        store.put_if_absent(SECOND, ours)
