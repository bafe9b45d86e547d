"""Holding an old version while a restore, a tag or a branch is made of it, so that no clean-up removes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from pennon.errors import CannotListError, NotFoundError, RetryableConflict, StoreError
from pennon.io.store import Store
from pennon.table.cleanup_notes import Hold, is_plan, new_hold_path, parse_plan
from pennon.table.naming import VERSIONS


@contextmanager
def held(line: Store, version: int, *, with_later: bool = False) -> Iterator[HeldVersion]:
    """Keep clean-ups from a version, and its files, as long as the context lasts.

    ``line``: the store of the table, or of the branch, that has the version.  ``with_later``: all later
    versions are kept, too.  Look within the context whether the version exists: a clean-up that ends before
    may have removed it.  Raises RetryableConflict if a clean-up is removing it.
    """
    held_version = HeldVersion(line, Hold(version, with_later))
    try:
        held_version.renew()
        yield held_version
    finally:
        held_version.let_go()


@dataclass(slots=True)
class HeldVersion:
    """A version that is held by files in ``_versions/``, for a week: a clean-up deletes older ones."""

    line: Store
    hold: Hold
    _paths: list[str] = field(default_factory=list)

    def renew(self) -> None:
        """Hold the version for another week; raises RetryableConflict if a clean-up is removing it."""
        path = new_hold_path(self.hold)
        self._paths.append(path)
        self.line.put(path, b"{}")
        _check_no_plan_removes(self.line, self.hold)

    def lasts(self) -> bool:
        """Tell whether no clean-up has taken the hold for one that a process left."""
        try:
            self.line.info(self._paths[-1])
        except NotFoundError:
            return False
        return True

    def let_go(self) -> None:
        """Delete the files; those that the store does not delete stay for a week."""
        for path in self._paths:
            with suppress(StoreError, NotFoundError):
                self.line.delete(path)


def _check_no_plan_removes(line: Store, hold: Hold) -> None:
    with suppress(CannotListError):  # then no plan of another process can be found
        for path in [path for path, _ in line.list_names(VERSIONS) if is_plan(path)]:
            try:
                plan = parse_plan(line.read_whole(path).to_pybytes())
            except NotFoundError:
                continue  # that clean-up has ended
            going = sorted(filter(hold.covers, plan.versions or ()))
            if going:
                message = (
                    f"a clean-up is removing version {going[0]} of {line.uri!r}: try again when it has ended. "
                    f"If none is running, one was cut short: run clean-up again, which ends it ({path})"
                )
                raise RetryableConflict(message)
