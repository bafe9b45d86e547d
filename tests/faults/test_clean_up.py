"""Clean-up that fails at any call or is killed at any step leaves a whole table, and the next run finishes."""

from __future__ import annotations

import itertools
import shutil
import uuid
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from pennon.errors import LanceError
from pennon.io import LocalStore
from pennon.io.store import Store
from pennon.table.versions import list_locations, read_manifest_at
from pennon.testing import Fault, FaultyStore, MemoryStore
from tests.faults.operations import (
    copy_memory,
    dataset_of,
    make_table,
    named_files,
    rows_of,
)
from tests.faults.test_kill import put_copy
from tests.faults.test_local_kill import killed

_NAMES = itertools.count()
ORPHAN = f"data/{'0' * 50}.lance"


@pytest.fixture(scope="module")
def base() -> MemoryStore:
    """Return a table of six versions, of which a tag names the first, and an orphan."""
    store = MemoryStore(uuid.uuid4().hex)
    make_table(store)
    dataset_of(store).optimize.compact_files()
    store.put(ORPHAN, b"abc")
    return store


def clean(store: Store) -> None:
    dataset_of(store).cleanup_old_versions(
        timedelta(0),
        error_if_tagged_old_versions=False,
        delete_unverified=True,
        delete_concurrency=1,
    )


def paths(store: Store) -> set[str]:
    return {path for path, _ in store.list_names("")}


def check(store: Store, base: Store) -> None:
    """Assert that each version that is there has all that it names, and the rows that it had."""
    there = paths(store)
    locations = list_locations(store)
    assert {1, 6} <= {location.version for location in locations}
    for location in locations:
        assert set(named_files(read_manifest_at(store, location))) <= there
        assert rows_of(store, location.version) == rows_of(base, location.version)


@pytest.mark.parametrize("kind", ["before", "after", "torn"])
def test_clean_up_with_any_failing_call_is_finished_by_the_next(
    base: MemoryStore, kind: str
) -> None:
    whole = copy_memory(base, f"clean-up-{next(_NAMES)}")
    clean(whole)
    assert len(list_locations(whole)) == 2
    assert ORPHAN not in paths(whole)
    for nth in itertools.count(1):
        store = copy_memory(base, f"clean-up-{next(_NAMES)}")
        faulty = FaultyStore(store, Fault(nth, kind))
        with suppress(LanceError):
            clean(faulty)
        check(store, base)
        clean(store)
        assert paths(store) == paths(whole)
        if faulty.calls < nth:
            break
    assert nth > 30


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=[pytest.mark.slow])])
def test_clean_up_killed_at_any_step_is_finished_by_the_next(
    base: MemoryStore, tmp_path: Path, every: int
) -> None:
    whole = copy_memory(base, f"clean-up-{next(_NAMES)}")
    clean(whole)
    for step in itertools.count(1, every):
        root = str(tmp_path / str(step))
        store = LocalStore(root, root)
        put_copy(base, store)
        died = killed(step, lambda store=store: clean(store))  # type: ignore[misc]
        check(store, base)
        clean(store)
        assert paths(store) == paths(whole)
        shutil.rmtree(root)
        if not died:
            break
    assert step > 20
