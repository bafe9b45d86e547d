"""Two writers through a manifest store, one of them with V1 names of manifests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pennon.table.commit.loop import commit
from pennon.table.commit.migrate_naming import migrate_to_v2
from pennon.table.naming import Naming
from pennon.table.versions import latest_version
from pennon.testing import WrappedStore
from tests.faults.test_external_commit import COMMIT, Table
from tests.unit.table.tables import FakeTime, append, new_fragment


@pytest.mark.parametrize("ours", Naming)
def test_the_race_for_a_version_is_lost_under_the_other_name(ours: Naming) -> None:
    """One of the two listed the names before a migration, and the other after it."""
    table = Table(Naming.V1)
    if ours is Naming.V2:
        migrate_to_v2(table.store)
    (first,) = table.files()
    body = table.objects.read_whole(first).to_pybytes()

    def make_the_other() -> None:
        if ours is Naming.V1:
            migrate_to_v2(table.store)
        else:  # as if it were not migrated yet
            table.objects.delete(first)
            table.objects.put(Naming.V1.manifest_path(1), body)
        commit(table.store, append(1, new_fragment(name="other.lance")))
        if ours is Naming.V2:
            table.objects.delete(Naming.V1.manifest_path(1))
            table.objects.put(first, body)

    class Late(WrappedStore):
        def before(self, verb: str, path: str) -> None:
            if verb == COMMIT and len(table.manifests.entries) == 1:
                make_the_other()

    late = table.seen_through(Late(table.objects))
    done = commit(late, append(1, new_fragment(name="mine.lance")), FakeTime().options())
    assert (done.version, latest_version(table.store)) == (3, 3)
    assert [f.files[0].path for f in done.fragments][1:] == ["other.lance", "mine.lance"]


def test_the_newest_version_is_migrated_between_two_pages_of_a_listing() -> None:
    """Its new name sorts before those of the second page, and its old name is gone by then."""
    table = Table(Naming.V1)
    commit(table.store, append(1))
    body = table.objects.read_whole(Naming.V1.manifest_path(1)).to_pybytes()
    table.objects.put(Naming.V2.manifest_path(1), body)

    class Pages(WrappedStore):
        is_asked = False

        def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
            if self.is_asked:
                return (yield from self.inner.list_names(prefix))
            self.is_asked = True
            first, second, _ = sorted(self.inner.list_names(prefix))
            yield from (first, second)
            migrate_to_v2(table.store)
            yield from (each for each in sorted(self.inner.list_names(prefix)) if each > second)

    assert latest_version(table.seen_through(Pages(table.objects))) == 2
    assert table.files() == [Naming.V2.manifest_path(version) for version in (2, 1)]
