"""A table that is looked at: its versions, opened when they are asked for, over one session."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

from pennon.dataset.lance_dataset import LanceDataset
from pennon.table.versions import ManifestLocation, latest_version, list_locations

T = TypeVar("T")

MOST_VERSIONS: Final = 8
MOST_ANSWERS: Final = 1_000
NEWEST_SECONDS: Final = 2.0


class ViewedTable:
    """A table that is looked at; threads may share it.

    Versions are opened once and share the session of the first.  What takes long to find, and does not change, is
    remembered (`remember`).
    """

    def __init__(self, dataset: LanceDataset) -> None:
        """Take the version that is shown if a request names none."""
        self.dataset = dataset.checkout_version(int(dataset.version))  # the caller's may move on
        self._lock = threading.Lock()
        self._versions: OrderedDict[int, LanceDataset] = OrderedDict(
            {dataset.version: self.dataset}
        )
        self._answers: OrderedDict[Hashable, Any] = OrderedDict()
        self._newest = 0, 0.0
        self._locations: tuple[int, list[ManifestLocation]] = 0, []

    @property
    def uri(self) -> str:
        """Return the place of the table."""
        return self.dataset.uri

    def at(self, version: int) -> LanceDataset:
        """Return a version, 0 for the one that the page was started with.  Raises NotFoundError."""
        number = version or self.dataset.version
        with self._lock:
            if number in self._versions:
                self._versions.move_to_end(number)
                return self._versions[number]
        found = self.dataset.checkout_version(number)
        with self._lock:
            self._versions[number] = found
            while len(self._versions) > MOST_VERSIONS:
                self._versions.popitem(last=False)
        return found

    def newest(self) -> int:
        """Return the number of the newest version, as it was `NEWEST_SECONDS` ago or later; longer ago where it takes long to find."""
        known, until = self._newest
        if time.monotonic() < until:
            return known
        start = time.monotonic()
        newest = int(latest_version(self.dataset.snapshot.store))
        took = time.monotonic() - start  # seconds, where a folder has a million versions
        self._newest = newest, start + max(NEWEST_SECONDS, 20 * took)
        return newest

    def locations(self) -> list[ManifestLocation]:
        """Return the places of all versions, oldest first; listed again when there is a newer one."""
        newest = self.newest()
        if self._locations[0] != newest:
            self._locations = newest, list_locations(self.dataset.snapshot.store)
        return self._locations[1]

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what ``make`` found for a key, now or lately."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                found: T = self._answers[key]
                return found
        made = make()
        with self._lock:
            self._answers[key] = made
            while len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
        return made
