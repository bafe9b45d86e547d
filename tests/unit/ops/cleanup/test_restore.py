"""A restore and a clean-up at once: what is restored has its files, wherever either of them pauses."""

from __future__ import annotations

import pytest

from pennon.testing import WrappedStore
from tests.unit.ops.cleanup.beside import MOST_STEPS, interleavings, new_store
from tests.unit.ops.cleanup.clocked import open_table, write


def restore(store: WrappedStore) -> None:
    """Make the first version the newest again."""
    open_table(store, 1).restore()  # type: ignore[arg-type] # a store of the same objects


def makes_manifest(verb: str, path: str) -> bool:
    """Tell whether a call creates the restored version."""
    return verb == "put_if_absent" and path.endswith(".manifest")


class LosingRace(WrappedStore):
    """A store in which another writer makes the version first, and a clean-up deletes the hold of a week ago."""

    lost = False

    def before(self, verb: str, path: str) -> None:
        if makes_manifest(verb, path):
            holds = [each for each in self.inner.list("_versions") if ".tmp_hold-1-" in each.path]
            assert holds
            if not self.lost:
                self.lost = True
                self.inner.delete(holds[0].path)
                write(self.inner, [5])  # type: ignore[arg-type] # the store of the table


def test_restore_that_loses_a_race_holds_its_version_again() -> None:
    store = new_store()
    restore(LosingRace(store))
    assert open_table(store).to_table()["n"].to_pylist() == [1, 2]
    assert [each["version"] for each in open_table(store).versions()] == [1, 2, 3, 4, 5]
    assert not [path for path in store.paths("_versions") if ".tmp_" in path]


@pytest.mark.parametrize("begins", range(1, MOST_STEPS))
def test_restore_beside_clean_up_keeps_its_files_or_is_refused(begins: int) -> None:
    for table, problem in interleavings(begins, restore, makes_manifest):
        expected = [1, 2] if problem is None else [3, 4]
        assert table.to_table()["n"].to_pylist() == expected
