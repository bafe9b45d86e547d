"""Durability of local files: the levels, and the files that are synced together at a commit.

=========  =====================================================================================
``full``   Each file is durable when it is closed, and each version when its commit returns.
``commit`` Each version is durable when its commit returns: the files that it names, and the folders that
           have their names, are synced together, beside the manifest's bytes and before the manifest has
           its name.  What no version names yet may be lost.
``none``   Nothing is synced.  A killed process loses nothing; a power cut may lose or tear what was
           written in the last minutes, manifests and the files of a table that was whole before, too.
=========  =====================================================================================

The storage option ``durability`` chooses one, else the environment's ``PENNON_DURABILITY``.  They count
for local folders; object stores acknowledge only what is durable.

At level ``commit`` a file is synced by its name in the process that wrote it.  Work that another process
commits (tasks of Spark, `write_fragments`, checkpoints) is synced when it is handed over (`hands_over`).
A file that could not be synced stays on the list: the system tells such an error once, and every later
commit to its table must fail, too, for it may name the file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import PoolSpec, in_forked_child, pool
from pennon.errors import ArgumentError, CommitError

P = ParamSpec("P")
R = TypeVar("R")

OPTION: Final = "durability"
VARIABLE: Final = "PENNON_DURABILITY"
_OF_A_VERSION: Final = frozenset({"data", "_deletions", "_indices", "_transactions"})
"""The folders whose files nobody finds before a manifest names them."""
_SYNCS: Final = PoolSpec("syncs", 8)
"""Threads that wait for a disk, which does several syncs in the time of one."""
_LONGEST_LIST: Final = 1000
"""The most files that wait for a commit; a write beyond that syncs them first."""


class Durability(Enum):
    """The levels: see `pennon.io.durability`."""

    FULL = "full"
    COMMIT = "commit"
    NONE = "none"

    @classmethod
    def chosen(cls, options: Mapping[str, str]) -> Durability:
        """Return the level of storage options, else of the environment, else ``full``.

        Raises ArgumentError for another word.
        """
        given = next((value for key, value in options.items() if key.lower() == OPTION), None)
        source = f"storage option {OPTION!r}"
        if given is None:
            given, source = os.environ.get(VARIABLE) or cls.FULL.value, VARIABLE
        try:
            return cls(str(given).lower())
        except ValueError:
            names = ", ".join(repr(each.value) for each in cls)
            message = f"{source} is {given!r}, and must be one of {names}"
            raise ArgumentError(message) from None

    @property
    def without_commit(self) -> Durability:
        """Return the level for files that are committed elsewhere, or not at all: no pass syncs them later."""
        return Durability.FULL if self is Durability.COMMIT else self

    def rule(self, root: str, path: str) -> SyncRule:
        """Return when the file ``path`` below the folder ``root`` is synced."""
        waits = self is Durability.COMMIT and not _OF_A_VERSION.isdisjoint(path.split("/")[:-1])
        return SyncRule(self, root, waits)


@dataclass(frozen=True, slots=True)
class SyncRule:
    """When a file of a table is synced: at its close, or, if it ``waits``, at the next commit to ``root``."""

    durability: Durability = Durability.FULL
    root: str = ""
    waits: bool = False

    @property
    def syncs(self) -> bool:
        """Return whether the file is synced at its close."""
        return not self.waits and self.durability is not Durability.NONE

    @property
    def is_kept(self) -> bool:
        """Return whether the file is synced at all."""
        return self.durability is not Durability.NONE

    def needed(self) -> list[Unsynced]:
        """Begin to sync the files of the table that have waited for this one."""
        return begin_syncs(self.root) if self.is_kept and _waiting else []


def sync_path(path: str) -> None:
    """Make a file's bytes durable, or the names in a folder; Windows, which opens no folders, does so by itself."""
    if os.name == "nt" and os.path.isdir(path):
        return
    fd = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Unsynced:
    """A file or folder of the table in ``root`` that waits for its sync; one thread does it, others wait."""

    def __init__(self, root: str, path: str) -> None:
        self.root = root
        self.path = path
        self.has_begun = False
        self._error: OSError | None = None
        self._turn = threading.Lock()

    def end(self) -> None:
        """Wait for the sync, or do it if no thread has begun.

        Raises CommitError if it failed, each time while the file is there.
        """
        with self._turn:
            if not self.has_begun:
                self._sync()
        if self._error is not None and os.path.lexists(self.path):
            message = f"{self.path} could not be synced, and no version may name it: {self._error}"
            raise CommitError(message) from self._error
        with _lock:
            if _waiting.get(self.path) is self:
                del _waiting[self.path]

    def attempt(self) -> None:
        """Do the sync, if no thread has begun; `end` tells its error."""
        with self._turn:
            if not self.has_begun:
                self._sync()

    def _sync(self) -> None:
        with _lock:
            self.has_begun = True
        try:
            sync_path(self.path)
        except FileNotFoundError:
            pass  # deleted meanwhile
        except OSError as error:
            self._error = error

    def begin_anew(self) -> Unsynced:
        """Return the same for a forked child, which has none of the threads that may have begun."""
        again = Unsynced(self.root, self.path)
        again._error, again.has_begun = self._error, self._error is not None
        return again

    @property
    def takes_more(self) -> bool:
        """Return whether the sync will see what was changed by now, or has failed for good."""
        return not self.has_begun or self._error is not None


_waiting: dict[str, Unsynced] = {}
_lock = threading.Lock()


def sync_later(root: str, paths: Iterable[str]) -> None:
    """Let files and folders wait for the next commit to the table in ``root``."""
    with _lock:
        for path in paths:
            known = _waiting.get(path)
            if known is None or not known.takes_more:
                _waiting[path] = Unsynced(root, path)
        is_long = len(_waiting) > _LONGEST_LIST
    if is_long:
        sync_now()


def begin_syncs(root: str | None = None) -> list[Unsynced]:
    """Begin to sync what waits for a commit to a table, or to any, side by side; the caller calls `end` of each."""
    with _lock:
        found = [each for each in _waiting.values() if root is None or _concerns(root, each.root)]
    for each in found[1:]:
        pool(_SYNCS).submit(each.attempt)
    return found


def sync_now() -> None:
    """Make durable what this process has written and not synced yet, in any table."""
    for each in begin_syncs():
        each.end()


def hands_over(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function sync at its end: another process may commit what it has written."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        found = function(*args, **kwargs)
        sync_now()
        return found

    return call


def _concerns(root: str, other: str) -> bool:
    """Return whether two folders are one, or one lies below the other, as a branch does below its table."""
    mine, theirs = root.rstrip("/") + "/", other.rstrip("/") + "/"
    return mine.startswith(theirs) or theirs.startswith(mine)


def _begin_anew() -> None:
    """Let a forked child sync itself what threads of its parent had begun, and may have held."""
    global _lock  # noqa: PLW0603 - the lock itself is replaced
    _lock = threading.Lock()
    for path, each in list(_waiting.items()):
        _waiting[path] = each.begin_anew()


in_forked_child(_begin_anew)
