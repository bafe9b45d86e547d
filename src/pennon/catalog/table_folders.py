"""The folders of tables below the root of a catalog, and the marker files in them.

=====================  ==============================================================================
``.lance-reserved``    the name is taken; a table is to be written here
``.lance-deregistered``  the files stay, but the name is forgotten
``_versions/``         a table was written here
=====================  ==============================================================================

Source: the lance-namespace specification, "Lance Directory Catalog", marker files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import quote

from pennon.catalog.object_ids import SUFFIX, check_location
from pennon.core.thread_pools import PoolSpec, map_all
from pennon.errors import (
    ArgumentError,
    FormatError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from pennon.io import open_store
from pennon.io.local import LocalStore
from pennon.io.paths import child_uri, parse_uri
from pennon.io.prefix_store import PrefixStore
from pennon.io.store import Store
from pennon.io.trust import below
from pennon.ops.cleanup.drop import check_table, drop_table
from pennon.table.external import ExternalStore
from pennon.table.naming import VERSIONS

RESERVED: Final = ".lance-reserved"
DEREGISTERED: Final = ".lance-deregistered"
_UNQUOTED: Final = "/$!'()*,;:@&=+"


class State(Enum):
    """The state of a folder: nothing is there, or a name was taken, a table written, or its name forgotten."""

    ABSENT = "absent"
    DECLARED = "declared"
    WRITTEN = "written"
    DEREGISTERED = "deregistered"


@dataclass(frozen=True, slots=True)
class TableFolders:
    """The folders below the root of a catalog, in its store."""

    store: Store

    def uri_of(self, folder: str) -> str:
        """Return what opens the table in a folder: an absolute path on a local disk, else a URI."""
        root = self.store.uri
        if "://" in root or root.lower().startswith("file:"):
            return child_uri(root, quote(folder, safe=_UNQUOTED))
        return os.path.join(parse_uri(root).path, folder)  # noqa: PTH118 - a path as text

    def folder_of(self, location: str, name: str) -> str:
        """Return the folder of a location: a URI or an absolute path below the root, or a path from it.

        Raises ArgumentError for any other place: a folder of tables holds only tables that lie in it.
        """
        inside: str | None = location
        if location.startswith("/") or "://" in location or location.lower().startswith("file:"):
            inside = below(location, self.store.uri)
        try:
            return check_location(inside or "", name)
        except FormatError:
            message = (
                f"the table {name[:100]!r} must lie below the root of its catalog, and the location given does "
                "not; NamedTables gives names to tables anywhere"
            )
            raise ArgumentError(message) from None

    def state_of(self, folder: str) -> State:
        """Return the state of a folder, with four requests at most, however large its table is."""
        if self._has(folder, DEREGISTERED):
            return State.DEREGISTERED
        if f"{folder}/{VERSIONS}" in set(self.store.list_folders(folder)):
            return State.WRITTEN
        if self._has(folder, RESERVED):
            return State.DECLARED
        first = next(iter(self.store.list_names(folder)), None)
        return State.ABSENT if first is None else State.WRITTEN

    def list_root_tables(self) -> list[str]:
        """Return the names of the tables of the root namespace, sorted; no table is opened.

        A folder costs one look for the marker of a forgotten name; in a bucket many are made at once.
        """
        folders = [each for each in self.store.list_folders("") if each.endswith(SUFFIX)]
        limits = self.store.limits
        if limits is None:
            are_gone = [self._has(folder, DEREGISTERED) for folder in folders]
        else:
            pool_spec = PoolSpec.requests(limits.concurrency)
            are_gone = map_all(lambda each: self._has(each, DEREGISTERED), folders, pool_spec)
        pairs = zip(folders, are_gone, strict=True)
        return sorted(each.removesuffix(SUFFIX) for each, is_gone in pairs if not is_gone)

    def reserve(self, folder: str) -> None:
        """Take a folder for a table that will be written; raises AlreadyExistsError if it is taken."""
        self.store.put_if_absent(f"{folder}/{RESERVED}", b"")

    def release(self, folder: str) -> None:
        """Take back what `reserve` did."""
        self.store.delete(f"{folder}/{RESERVED}")
        self._delete_empty(folder)

    def set_deregistered(self, folder: str, *, is_deregistered: bool) -> None:
        """Write or delete the marker of a forgotten name."""
        path = f"{folder}/{DEREGISTERED}"
        if is_deregistered:
            self.store.put(path, b"")
        else:
            self.store.delete(path)

    def delete(self, folder: str, state: State) -> None:
        """Delete a table, or what lies in a folder where none was written yet.

        The marker of a name that is taken is made first and deleted last, so that what a drop leaves that is cut
        short belongs to the name, and goes with the next drop.
        Raises ArgumentError for files that are no table and were not reserved for one; none is deleted then.
        """
        if isinstance(self.store, ExternalStore):
            message = "versions that an external manifest store grants cannot be taken back there"
            raise UnsupportedError(message)
        if state is State.ABSENT:
            return
        inside = _Unmarked(self.store, folder)
        has_versions = f"{folder}/{VERSIONS}" in set(self.store.list_folders(folder))
        if has_versions or state is State.WRITTEN:
            check_table(inside)
            self.store.put(f"{folder}/{RESERVED}", b"")
            drop_table(inside, missing_ok=True)
        paths = [path for path, _ in inside.list_names("")]
        map_all(inside.delete, paths, PoolSpec("clean", 8))
        self.store.delete(f"{folder}/{RESERVED}")
        self._delete_empty(folder)

    def rename(self, folder: str, new_folder: str) -> None:
        """Give a folder another name, at once.  Raises UnsupportedError where folders have no names of their own."""
        if not isinstance(self.store, LocalStore):
            message = (
                "a table in the root namespace lies in the folder of its name, and only local file systems "
                "rename folders; clone the table and drop the old one, or keep tables in namespaces"
            )
            raise UnsupportedError(message)
        self.store.rename_folder(folder, new_folder)

    def _has(self, folder: str, name: str) -> bool:
        try:
            self.store.info(f"{folder}/{name}")
        except NotFoundError:
            return False
        return True

    def _delete_empty(self, folder: str) -> None:
        """Delete the empty folders of a table on a local disk."""
        if isinstance(self.store, LocalStore):
            inside = open_store(self.uri_of(folder))
            if isinstance(inside, LocalStore):
                with suppress(StoreError):
                    inside.delete_empty_folders()


class _Unmarked(PrefixStore):
    """The folder of a table, in which the marker of a name that is taken is not listed."""

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Yield path and size of the objects, but not of the marker."""
        listed = super().list_names(prefix)
        return (each for each in listed if each[0] != RESERVED)
