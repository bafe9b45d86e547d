"""The interface of an external manifest store: a table of keys that grants each key once.

It remembers, for each version of a table, the path of its manifest.  Four verbs are enough, so that
any database that can insert a row unless it is there can be one (`pennon.testing.ManifestStoreContract`
is the suite that it must pass).  A manifest store is *rooted*, as a `pennon.io.store.Store` is: it is
opened for one table, and its paths are relative to the root of that table.

The manifest of a commit that is half done is *staged*, as ``{final name}-{uuid}``.  Readers of a listing
take no notice of such names (`pennon.table.naming`).

It must be consistent: what one writer was told is what the next reader sees.

Source: seeds, 002 "External Manifest Store"; rust/lance-table/src/io/commit/external_manifest.rs in the
Lance repository.
"""

from __future__ import annotations

import re
import uuid
from typing import Protocol

from pennon.core.fast_dataclass import dataclass
from pennon.errors import Breadcrumb, FormatError
from pennon.table.naming import VERSIONS, parse_manifest_name

_STAGED = re.compile(r"(.+\.manifest)-[0-9A-Za-z-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Entry:
    """The location of the manifest of a version.

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

    def get_latest(self) -> Entry | None:
        """Return the entry of the highest version; None if the store knows of no version."""

    def put_if_not_exists(self, entry: Entry) -> None:
        """Add an entry; of all that race for one version, exactly one wins.

        Raises AlreadyExistsError if the version has an entry.
        """

    def put_if_exists(self, entry: Entry) -> None:
        """Replace the entry of a version; raises NotFoundError if it has none."""

    def below(self, folder: str) -> ManifestStore:
        """Return the manifests of the table in a folder below this one: a branch is such a table.

        They are the same as those of a store that is opened on that table.
        """


def new_staging_path(final: str) -> str:
    """Return a unique path for a manifest that is to be ``final``."""
    return f"{final}-{uuid.uuid4()}"


def version_of(path: str) -> int | None:
    """Return the version whose manifest has this path; None if it is no (finished) manifest's."""
    folder, _, name = path.rpartition("/")
    parsed = parse_manifest_name(name) if folder == VERSIONS else None
    return None if parsed is None else parsed[1]


def final_path(entry: Entry) -> str:
    """Return where the manifest of an entry lies in the end.

    Raises FormatError if its path is none that a manifest of its version can have: an entry is
    somebody else's word, and what it names is copied.
    """
    staged = _STAGED.fullmatch(entry.path)
    final = staged.group(1) if staged else entry.path
    if version_of(final) != entry.version:
        message = f"the manifest store says that version {entry.version} is {entry.path[:200]!r}"
        raise FormatError(message, where=Breadcrumb(file=VERSIONS))
    return final


def is_staged(entry: Entry) -> bool:
    """Tell whether the commit of an entry is half done."""
    return entry.path != final_path(entry)
