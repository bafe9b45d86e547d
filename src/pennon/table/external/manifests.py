"""What is asked of an external manifest store: a table of keys that grants each key once.

It remembers, for each version of a table, the path of its manifest.  Four verbs are enough, so that
any database that can insert a row unless it is there can be one (`pennon.testing.ManifestStoreContract`
is the suite that it must pass).  A manifest store is *rooted*, as a `pennon.io.store.Store` is: it is
opened for one table, and its paths are relative to the root of that table.

It must be consistent: what one writer was told is what the next reader sees.

Source: seeds, 002 "External Manifest Store"; rust/lance-table/src/io/commit/external_manifest.rs in the
Lance repository.
"""

from __future__ import annotations

from typing import Protocol

from pennon.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """Where the manifest of a version lies.

    ``path``: ``_versions/{...}.manifest``, or ``_versions/{...}.manifest-{uuid}`` as long as the
    commit is half done.  ``size_bytes`` is None where an older writer left it out.
    """

    version: int
    path: str
    size_bytes: int | None = None


class ManifestStore(Protocol):
    """The manifests of one table, by version.

    Every verb raises StoreError if the store failed or did not answer; a put may have happened then.
    A manifest store pickles, and holds nothing that must survive a fork.
    """

    def get(self, version: int) -> Entry | None:
        """Return what is known of a version; None if nothing is."""
        ...

    def get_latest(self) -> Entry | None:
        """Return the entry of the highest version; None if the store knows of no version."""
        ...

    def put_if_not_exists(self, entry: Entry) -> None:
        """Add an entry; of all that race for one version, exactly one wins.

        Raises AlreadyExistsError if the version has an entry.
        """
        ...

    def put_if_exists(self, entry: Entry) -> None:
        """Replace the entry of a version; raises NotFoundError if it has none."""
        ...

    def below(self, folder: str) -> ManifestStore:
        """Return the manifests of the table in a folder below this one: a branch is such a table.

        They are the same as those of a store that is opened on that table.
        """
        ...
