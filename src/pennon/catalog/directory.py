"""A folder of tables as a catalog, by the lance-namespace specification: other programs see the same tables.

==============================  =============================================================================
``root/images.lance``           the table ``images`` of the root namespace, found by its folder alone
``root/__manifest``             a Lance table: namespaces, the tables in them, and properties
``root/1f2e3d4c_train$images``  the table ``train.images``, found by its row in ``__manifest``
==============================  =============================================================================

A folder without ``__manifest`` is a catalog, too (version 1 of the specification); the first namespace, or the first
properties of a table, make one.  Tables of the root namespace get rows in it once it is there, for programs that
list nothing else.

Source: the lance-namespace specification, "Lance Directory Catalog"; pylance 14.0.2.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pennon.catalog.base import Catalog, TableEntry, TableName
from pennon.catalog.manifest_rows import NAMESPACE, TABLE, ManifestRow, ManifestRows, metadata_of
from pennon.catalog.manifest_table import Change, ManifestTable
from pennon.catalog.name_errors import (
    check_namespace,
    check_no_versions,
    folder_taken,
    no_namespace,
    no_table,
    taken,
)
from pennon.catalog.object_ids import (
    check_location,
    check_name,
    new_folder,
    object_id,
    root_folder,
)
from pennon.catalog.table_folders import State, TableFolders
from pennon.catalog.table_names import join_name
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    ConflictError,
    FormatError,
    NotFoundError,
    UnsupportedError,
)
from pennon.io import open_store
from pennon.io.store import Store
from pennon.table.naming import VERSIONS

_USER: Final = re.compile(r"(?<=://)[^/@]*@")


class DirectoryCatalog(Catalog):
    """The tables in a folder or in a bucket, by name.

    ``root``: a path or URI.  ``storage_options``: credentials and the like, for the catalog and its tables; never
    printed.  ``manifest``: False never reads or makes ``__manifest``, so there are no namespaces.  ``folders``: False finds
    all tables by ``__manifest``, those of the root namespace, too, which then lie in folders of any name.

    A table of the root namespace lies in the folder of its name: to rename it renames the folder, on a local disk.

    >>> from pennon.catalog import DirectoryCatalog
    >>> catalog = DirectoryCatalog(uri)
    >>> catalog.create_namespace(("train",))
    >>> entry = catalog.declare_table(("train", "images"))
    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), entry.location)
    >>> catalog.list_tables(("train",))
    ['images']
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        *,
        manifest: bool = True,
        folders: bool = True,
    ) -> None:
        if not (manifest or folders):
            message = (
                "a catalog finds tables by __manifest, by folders, or by both: one must be True"
            )
            raise ArgumentError(message)
        self._options = dict(storage_options or {})
        self._has_manifest = manifest
        self._lists_folders = folders
        self._use(open_store(root, self._options))

    @classmethod
    def on_store(cls, store: Store) -> DirectoryCatalog:
        """Return the catalog on the root of a store that is open already, such as those of `pennon.testing`."""
        made = cls("memory://")
        made._use(store)
        return made

    def _use(self, store: Store) -> None:
        self._store = store
        self._folders = TableFolders(store)
        self._manifest = ManifestTable(store)

    @property
    def root(self) -> str:
        """Return the folder's path or URI."""
        return self._store.uri

    def __repr__(self) -> str:
        """Return the root, without user and password."""
        return f"DirectoryCatalog({_USER.sub('', self.root)!r})"

    # --- namespaces -------------------------------------------------------------------------------

    def list_namespaces(self, parent: TableName = ()) -> list[str]:
        """Return the names of the namespaces directly below ``parent``, sorted."""
        parent = check_name(parent, is_table=False)
        rows = self._read()
        found = rows.names_in(object_id(parent), NAMESPACE)
        if not found:
            check_namespace(rows, parent)
        return found

    def describe_namespace(self, name: TableName) -> dict[str, str]:
        """Return the properties of a namespace."""
        name = check_name(name, is_table=False)
        if not name:
            return {}
        found = self._read().find(object_id(name))
        if found is None or found.object_type != NAMESPACE:
            raise no_namespace(name)
        return found.properties

    def create_namespace(
        self,
        name: TableName,
        properties: Mapping[str, str] | None = None,
        *,
        exist_ok: bool = False,
    ) -> None:
        """Make a namespace; its parent must exist."""
        name = self._of_manifest(check_name(name, is_table=False), "namespaces")
        if not name and exist_ok:
            return
        if not name:
            message = "the root namespace () is always there"
            raise AlreadyExistsError(message)
        if len(name) == 1 and self._root_state(name) is not State.ABSENT:
            message = f"there is a table {join_name(name)}, and a namespace cannot have its name"
            raise AlreadyExistsError(message)
        made = ManifestRow(object_id(name), NAMESPACE, None, metadata_of(properties))

        def decide(rows: ManifestRows) -> Change:
            check_namespace(rows, name[:-1])
            found = rows.find(made.object_id)
            if found is None:
                return Change((made,))
            if found.object_type == NAMESPACE and exist_ok:
                return Change()
            raise taken(name, found)

        self._manifest.change(decide)

    def drop_namespace(self, name: TableName, *, missing_ok: bool = False) -> None:
        """Remove an empty namespace; one that holds tables or namespaces is an `ArgumentError`."""
        name = self._of_manifest(check_name(name, is_table=False), "namespaces")
        if not name:
            message = "the root namespace () cannot be dropped"
            raise ArgumentError(message)
        itself = object_id(name)

        def decide(rows: ManifestRows) -> Change:
            if not rows.has_namespace(itself):
                if missing_ok:
                    return Change()
                raise no_namespace(name)
            if rows.has_below(itself):
                message = f"the namespace {join_name(name)} is not empty; drop its tables and namespaces first"
                raise ArgumentError(message)
            return Change(removed=frozenset({itself}))

        self._manifest.change(decide)

    # --- tables -----------------------------------------------------------------------------------

    def list_tables(self, namespace: TableName = ()) -> list[str]:
        """Return the names of the tables directly in ``namespace``, sorted.  No table is opened."""
        namespace = check_name(namespace, is_table=False)
        if not namespace and self._lists_folders:
            return self._folders.list_root_tables()
        rows = self._read()
        found = rows.names_in(object_id(namespace), TABLE)
        if not found:
            check_namespace(rows, namespace)
        return found

    def describe_table(self, name: TableName) -> TableEntry:
        """Return the entry of a table.  The table is not opened."""
        return self._find(check_name(name))[0]

    def declare_table(
        self,
        name: TableName,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableEntry:
        """Take a name for a table that will be written: the entry says where to write it.

        ``location``: below the root; a table of the root namespace lies in the folder of its name.
        """
        name = self._checked(name)
        folder = self._place(name, location)
        made = ManifestRow(object_id(name), TABLE, folder, metadata_of(properties))
        is_by_folder = self._is_by_folder(name)
        if self._folders.state_of(folder) is not State.ABSENT:
            raise self._folder_taken(name, folder)
        if not is_by_folder:
            self._check_free(self._manifest.read(), name)
        self._folders.reserve(folder)
        try:
            self._add(made, name, is_needed=not is_by_folder or bool(properties))
        except AlreadyExistsError:
            self._folders.release(folder)
            raise
        return self._entry(name, folder, properties or {}, State.DECLARED)

    def register_table(
        self, name: TableName, location: str, properties: Mapping[str, str] | None = None
    ) -> TableEntry:
        """Give a name to a table that exists at ``location``, which is below the root.

        A table of the root namespace lies in the folder of its name, so this only takes back a `deregister_table`.
        """
        name = self._checked(name)
        folder = self._place(name, location)
        by_folder = self._is_by_folder(name)
        state = self._folders.state_of(folder)
        if by_folder and state in {State.WRITTEN, State.DECLARED} and self._is_listed(name):
            raise self._folder_taken(name, folder)
        if f"{folder}/{VERSIONS}" not in set(self._store.list_folders(folder)):
            message = f"there is no table at {location[:200]!r}"
            raise NotFoundError(message)
        made = ManifestRow(object_id(name), TABLE, folder, metadata_of(properties))
        self._add(made, name, is_needed=not by_folder or bool(properties))
        if state is State.DEREGISTERED:
            self._folders.set_deregistered(folder, is_deregistered=False)
        return self._entry(name, folder, properties or {}, State.WRITTEN)

    def deregister_table(self, name: TableName) -> TableEntry:
        """Forget a table's name; its files stay."""
        name = self._checked(name)
        entry, folder = self._find(name)
        if self._is_by_folder(name):
            self._folders.set_deregistered(folder, is_deregistered=True)
        self._remove(name)
        return entry

    def restore_table(self, name: TableName) -> TableEntry:
        """Take back a name of the root namespace that `deregister_table` forgot; its table is in the folder of the name."""
        name = self._checked(name)
        folder = root_folder(name[0]) if self._is_by_folder(name) else None
        if folder is not None and self._folders.state_of(folder) is State.DEREGISTERED:
            return self.register_table(name, folder)
        return super().restore_table(name)

    def drop_table(self, name: TableName) -> TableEntry:
        """Forget a table's name, and delete its files.

        Files go first: a drop that is cut short can be run again.
        """
        name = self._checked(name)
        entry, folder = self._find(name)
        self._folders.delete(folder, self._folders.state_of(folder))
        self._remove(name)
        return entry

    def rename_table(self, name: TableName, new_name: TableName) -> TableEntry:
        """Give a table another name.

        Within namespaces only the name changes.  From and to the root namespace, and within it, the folder
        is renamed, which only local file systems do: elsewhere that is an `UnsupportedError`.
        """
        name, new_name = self._checked(name), self._checked(new_name)
        entry, folder = self._find(name)
        if name == new_name:
            return entry
        check_no_versions(self._read(), name)
        was_by_folder, is_by_folder = self._is_by_folder(name), self._is_by_folder(new_name)
        new_place = folder
        if is_by_folder:
            new_place = root_folder(new_name[0])
            if self._folders.state_of(new_place) is not State.ABSENT:
                raise self._folder_taken(new_name, new_place)
        elif was_by_folder:
            new_place = new_folder(new_name)
        if new_place != folder:
            self._check_free(self._read(), new_name)
            self._folders.rename(folder, new_place)
        try:
            self._rename_row(
                name, new_name, new_place, entry.properties, is_needed=not is_by_folder
            )
        except (AlreadyExistsError, NotFoundError, ConflictError):
            if new_place != folder:
                self._folders.rename(new_place, folder)
            raise
        return self._find(new_name)[0]

    # --- names and folders ------------------------------------------------------------------------

    def _is_by_folder(self, name: TableName) -> bool:
        return len(name) == 1 and self._lists_folders

    def _checked(self, name: TableName) -> TableName:
        """Return a name of a table that this catalog can change."""
        name = check_name(name)
        return name if self._is_by_folder(name) else self._of_manifest(name, "tables in namespaces")

    def _of_manifest(self, name: TableName, objects: str) -> TableName:
        if not self._has_manifest:
            message = (
                f"a catalog that uses no __manifest has no {objects}; open it with manifest=True"
            )
            raise UnsupportedError(message)
        return name

    def _place(self, name: TableName, location: str | None) -> str:
        """Return the folder that a table gets, or has."""
        own = root_folder(name[0]) if self._is_by_folder(name) else None
        if location is None:
            return own or new_folder(name)
        folder = self._folders.folder_of(location, join_name(name))
        if own is not None and folder != own:
            message = (
                f"the table {join_name(name)} of the root namespace must lie in the folder {own!r} of the catalog, "
                f"not in {folder[:200]!r}; in a namespace it may have any folder"
            )
            raise ArgumentError(message)
        return folder

    def _root_state(self, name: TableName) -> State:
        return self._folders.state_of(root_folder(name[0])) if self._lists_folders else State.ABSENT

    def _is_listed(self, name: TableName) -> bool:
        """Return whether other programs list a table of the root namespace: it has a row, or there is no `__manifest`."""
        rows = self._read()
        return rows.manifest is None or rows.find_table(object_id(name)) is not None

    def _folder_taken(self, name: TableName, folder: str) -> AlreadyExistsError:
        state = self._folders.state_of(folder)
        return folder_taken(name, is_deregistered=state is State.DEREGISTERED)

    def _check_free(self, rows: ManifestRows, name: TableName) -> None:
        """Raise an error if a name cannot be given: its namespace is missing, or an object has it."""
        check_namespace(rows, name[:-1])
        found = rows.find(object_id(name))
        if found is not None and (found.object_type != TABLE or not self._is_by_folder(name)):
            raise taken(name, found)

    # --- entries ----------------------------------------------------------------------------------

    def _find(self, name: TableName) -> tuple[TableEntry, str]:
        """Return the entry of a table, and its folder below the root."""
        if self._is_by_folder(name):
            folder = root_folder(name[0])
            state = self._folders.state_of(folder)
            if state in {State.ABSENT, State.DEREGISTERED}:
                raise no_table(name)
            return self._entry(name, folder, self._root_properties(name), state), folder
        found = self._read().find_table(object_id(name))
        if found is None:
            raise no_table(name)
        folder = check_location(found.location or "", join_name(name))
        return self._entry(name, folder, found.properties, self._folders.state_of(folder)), folder

    def _root_properties(self, name: TableName) -> dict[str, str]:
        """Return the properties of a table of the root namespace; a damaged ``__manifest`` has none for it."""
        with suppress(FormatError, UnsupportedError):
            found = self._read().find_table(object_id(name))
            return {} if found is None else found.properties
        return {}

    def _entry(
        self, name: TableName, folder: str, properties: Mapping[str, str], state: State
    ) -> TableEntry:
        uri = self._folders.uri_of(folder)
        is_declared = state is State.DECLARED
        return TableEntry(name, uri, dict(self._options), dict(properties), declared=is_declared)

    # --- rows -------------------------------------------------------------------------------------

    def _read(self) -> ManifestRows:
        return self._manifest.read() if self._has_manifest else ManifestRows.none()

    def _add(self, row: ManifestRow, name: TableName, *, is_needed: bool) -> None:
        """Add a table's row.  A table of the root namespace needs one only where there is ``__manifest``."""

        def decide(rows: ManifestRows) -> Change:
            if rows.manifest is None and not is_needed:
                return Change()
            self._check_free(rows, name)
            stale = {row.object_id} if rows.find(row.object_id) is not None else set()
            return Change((row,), frozenset(stale))

        if self._has_manifest:
            self._manifest.change(decide)

    def _remove(self, name: TableName) -> None:
        itself = object_id(name)

        def decide(rows: ManifestRows) -> Change:
            if rows.find_table(itself) is None:
                return Change()
            return Change(removed=frozenset({itself}) | rows.versions_of(itself))

        if self._has_manifest:
            self._manifest.change(decide)

    def _rename_row(
        self,
        name: TableName,
        new_name: TableName,
        folder: str,
        properties: Mapping[str, str],
        *,
        is_needed: bool,
    ) -> None:
        """Give a table's row another name and folder; make it if there is none and it is needed."""
        old_id = object_id(name)
        made = ManifestRow(object_id(new_name), TABLE, folder, metadata_of(properties))

        def decide(rows: ManifestRows) -> Change:
            found = rows.find_table(old_id)
            self._check_free(rows, new_name)
            if found is None:
                if not self._is_by_folder(name):
                    raise no_table(name)
                if rows.manifest is None and not is_needed:
                    return Change()
            stale = {made.object_id} if rows.find(made.object_id) is not None else set()
            if found is not None and found.location == folder:
                return Change(removed=frozenset(stale), renamed={old_id: made.object_id})
            return Change((made,), frozenset({old_id, *stale}))

        if self._has_manifest:
            self._manifest.change(decide)
