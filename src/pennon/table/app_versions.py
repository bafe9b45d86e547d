"""Idempotent commits: the last version of its work that each application committed (Delta's ``txnAppId``, ``txnVersion``).

An application numbers its batches.  The commit of a batch says the application and the number in the properties of its
transaction, and the manifest that it makes keeps them in the table's config::

    pennon.txn.{application} = {number}

So a batch that is run again is known by one look at the newest manifest, whatever was committed since: every writer
takes the config over from the version before.  No race is left either, for a commit builds on the manifest that it
looked at.  A restored version has the config of its time, as it has the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pennon.core.fast_dataclass import dataclass
from pennon.errors import AlreadyCommittedError, ArgumentError
from pennon.table.manifest import Manifest

CONFIG_PREFIX: Final = "pennon.txn."
_APP, _VERSION = "pennon.txn.app", "pennon.txn.version"
_MOST_VERSION: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AppVersion:
    """The number that an application gives to what it commits; later numbers are larger."""

    app: str
    version: int

    def __post_init__(self) -> None:
        """Raise ArgumentError for an application without a name, or a number that is none."""
        if not self.app:
            message = "an application that numbers its commits needs a name"
            raise ArgumentError(message)
        if not 0 <= self.version <= _MOST_VERSION:
            message = f"application {self.app!r}: a commit is numbered from 0 to {_MOST_VERSION}, not {self.version}"
            raise ArgumentError(message)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> AppVersion | None:
        """Return what the properties of a transaction say; None if they say nothing."""
        app, version = properties.get(_APP), properties.get(_VERSION, "")
        return cls(app, int(version)) if app and version.isdecimal() else None

    def properties(self) -> dict[str, str]:
        """Return the properties of the transaction that commits it."""
        return {_APP: self.app, _VERSION: str(self.version)}

    def is_in(self, manifest: Manifest) -> bool:
        """Tell whether a version of the table has this number, or a later one of the application."""
        last = last_version(manifest, self.app)
        return last is not None and last >= self.version

    def check_is_new(self, manifest: Manifest) -> None:
        """Raise AlreadyCommittedError if `is_in` is true."""
        if self.is_in(manifest):
            message = (
                f"application {self.app!r} has committed its version {last_version(manifest, self.app)} already: version "
                f"{self.version} is not committed again"
            )
            raise AlreadyCommittedError(message)

    def config(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return the config of a table that has this number."""
        return {**config, CONFIG_PREFIX + self.app: str(self.version)}


def last_version(manifest: Manifest, app: str) -> int | None:
    """Return the last number that an application committed; None if it never did."""
    text = manifest.config.get(CONFIG_PREFIX + app, "")
    return int(text) if text.isdecimal() else None


def app_version(app: str | None, version: int | None) -> AppVersion | None:
    """Return what a caller says of its application, None for nothing.

    Raises ArgumentError if only one of the two is said, or one makes no sense.
    """
    if app is None and version is None:
        return None
    if app is None or version is None:
        message = "an application and the number of its batch go together: give both, or none"
        raise ArgumentError(message)
    return AppVersion(app, version)
