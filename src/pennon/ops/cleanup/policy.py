"""The policy of a clean-up: which versions are old, and when a file without a version is an orphan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pennon.errors import ArgumentError
from pennon.table.commit.new_files import ORPHAN_AGE as ORPHAN_AGE

DEFAULT_AGE: Final = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Policy:
    """The rule that says which versions are old.

    They are at least ``older_than``, not among the last ``retain_versions``, and among ``versions``;
    what is None does not matter.  With ``delete_unverified`` orphans go at once, which is safe
    only while nobody writes.
    """

    older_than: timedelta | None = None
    retain_versions: int | None = None
    versions: frozenset[int] | None = None
    delete_unverified: bool = False
    error_if_tagged: bool = True

    def __post_init__(self) -> None:
        """Refuse to keep no version."""
        if self.retain_versions is not None and self.retain_versions < 1:
            message = f"retain_versions must be at least 1, got {self.retain_versions}"
            raise ArgumentError(message)

    @classmethod
    def of(
        cls,
        older_than: timedelta | None,
        retain_versions: int | None,
        versions: Iterable[int] | None,
        *,
        delete_unverified: bool,
        error_if_tagged: bool,
    ) -> Policy:
        """Return the policy of a call; one that says nothing means versions older than two weeks."""
        if older_than is None and retain_versions is None and versions is None:
            older_than = DEFAULT_AGE
        given: object = older_than
        if given is not None and not isinstance(given, timedelta):
            message = (
                f"older_than is a timedelta, as datetime.timedelta(days=7), not {older_than!r}"
            )
            raise TypeError(message)
        chosen = None if versions is None else frozenset(versions)
        return cls(older_than, retain_versions, chosen, delete_unverified, error_if_tagged)

    def old(self, versions: dict[int, datetime], now: datetime) -> set[int]:
        """Return which of these versions are old; each with the time when it was stored."""
        last = sorted(versions)[-self.retain_versions :] if self.retain_versions else []
        return {
            version
            for version, stored in versions.items()
            if (self.older_than is None or now - stored >= self.older_than)
            and version not in last
            and (self.versions is None or version in self.versions)
        }

    def is_orphan(self, stored: datetime, now: datetime) -> bool:
        """Tell whether a file that no version names, and none ever named as far as we know, may go."""
        return self.delete_unverified or now - stored > ORPHAN_AGE
