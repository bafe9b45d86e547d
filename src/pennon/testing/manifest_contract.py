"""The tests that every external manifest store must pass.

    class TestMyManifests(ManifestStoreContract):
        def manifests(self, table: str) -> ManifestStore:
            return MyManifests(..., table)

pytest runs the methods that begin with ``test_``, each on tables of its own.
"""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pennon.errors import AlreadyExistsError, NotFoundError
from pennon.table.external import Entry, ManifestStore
from pennon.testing.raises import raises

_WRITERS = 8
_ROUNDS = 5
_HIGHEST = (1 << 63) - 1


def entry_of(version: int, end: str = "", size_bytes: int | None = 100) -> Entry:
    """Return an entry for tests."""
    return Entry(version, f"_versions/{(1 << 64) - 1 - version:020}.manifest{end}", size_bytes)


class ManifestStoreContract:
    """The conformance suite of `pennon.table.external.ManifestStore`."""

    def manifests(self, table: str) -> ManifestStore:
        """Return a new handle on the manifests of a table; two of one name are of one table."""
        raise NotImplementedError

    def new_table(self) -> tuple[ManifestStore, ManifestStore]:
        """Return two handles on a table without versions."""
        name = f"table-{uuid.uuid4().hex}"
        return self.manifests(name), self.manifests(name)

    def test_nothing_is_known_of_a_new_table(self) -> None:
        """No entry, no latest one; none can be replaced, and to try adds none."""
        one, other = self.new_table()
        assert one.get(1) is None
        assert one.get_latest() is None
        with raises(NotFoundError):
            one.put_if_exists(entry_of(1))
        assert other.get(1) is None
        assert other.get_latest() is None

    def test_what_one_handle_puts_the_other_sees(self) -> None:
        """At once, and with all parts."""
        one, other = self.new_table()
        for entry in (entry_of(1), entry_of(2, "-some-uuid", 1 << 40), entry_of(3, "", None)):
            one.put_if_not_exists(entry)
            assert other.get(entry.version) == entry
            assert other.get_latest() == entry
        assert other.get(1) == entry_of(1)
        assert other.get(4) is None

    def test_a_version_is_granted_once(self) -> None:
        """The first entry stays."""
        one, other = self.new_table()
        one.put_if_not_exists(entry_of(1, "-mine"))
        for late in (entry_of(1, "-other"), entry_of(1, "-mine"), entry_of(1)):
            with raises(AlreadyExistsError):
                other.put_if_not_exists(late)
        assert one.get(1) == entry_of(1, "-mine")

    def test_an_entry_is_replaced_as_a_whole(self) -> None:
        """As often as one likes; others stay."""
        one, other = self.new_table()
        one.put_if_not_exists(entry_of(1))
        one.put_if_not_exists(entry_of(2, "-staged", 5))
        for handle in (one, other, one):
            handle.put_if_exists(entry_of(2, "", None))
            assert other.get(2) == entry_of(2, "", None)
        assert other.get(1) == entry_of(1)
        with raises(AlreadyExistsError):
            one.put_if_not_exists(entry_of(2))

    def test_the_latest_is_the_highest_number(self) -> None:
        """The latest version is the highest number: not the last put, nor the last in text order."""
        one, other = self.new_table()
        for version in (9, 10, 2, 1000, 999, _HIGHEST, 1):
            one.put_if_not_exists(entry_of(version))
        assert other.get_latest() == entry_of(_HIGHEST)

    def test_tables_are_told_apart(self) -> None:
        """Also where the name of one begins with that of another."""
        name = f"table-{uuid.uuid4().hex}"
        names = [name, f"{name}/tree/branch", f"{name}2", name.upper()]
        for number, each in enumerate(names, 1):
            self.manifests(each).put_if_not_exists(entry_of(number))
        for number, each in enumerate(names, 1):
            assert self.manifests(each).get_latest() == entry_of(number)

    def test_a_table_below_is_one_of_its_own(self) -> None:
        """The same, however it was opened."""
        name = f"table-{uuid.uuid4().hex}"
        above, below = self.manifests(name), self.manifests(name).below("tree/branch")
        above.put_if_not_exists(entry_of(5))
        below.put_if_not_exists(entry_of(1))
        assert above.get(1) is None
        assert below.get_latest() == entry_of(1)
        assert self.manifests(f"{name}/tree/branch").get_latest() == entry_of(1)

    def test_it_pickles(self) -> None:
        """The copy is of the same table."""
        one, other = self.new_table()
        one.put_if_not_exists(entry_of(1))
        copy: ManifestStore = pickle.loads(pickle.dumps(one))  # noqa: S301 - made two lines above
        copy.put_if_not_exists(entry_of(2))
        assert other.get_latest() == entry_of(2)

    def test_of_those_who_race_one_wins(self) -> None:
        """Its entry is what stays."""
        name = f"table-{uuid.uuid4().hex}"
        handles = [self.manifests(name) for _ in range(_WRITERS)]
        for version in range(1, _ROUNDS + 1):
            gate = threading.Barrier(_WRITERS)
            with ThreadPoolExecutor(_WRITERS) as pool:
                won = list(pool.map(_racer(handles, version, gate), range(_WRITERS)))
            winners = [number for number, is_winner in enumerate(won) if is_winner]
            assert len(winners) == 1
            assert handles[0].get(version) == entry_of(version, f"-{winners[0]}")


def _racer(
    handles: list[ManifestStore], version: int, gate: threading.Barrier
) -> Callable[[int], bool]:
    def race(number: int) -> bool:
        gate.wait()
        try:
            handles[number].put_if_not_exists(entry_of(version, f"-{number}"))
        except AlreadyExistsError:
            return False
        return True

    return race
