"""A dict of names and places as a catalog, in this process's memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from pennon.catalog.base import Catalog, TableEntry, TableName
from pennon.catalog.table_names import check_parts, join_name, split_name
from pennon.errors import AlreadyExistsError, ArgumentError, NotFoundError
from pennon.io import open_store
from pennon.ops.cleanup.drop import drop_table
from pennon.table.versions import read_newest_if_any


class NamedTables(Catalog):
    """A catalog of a dict from names to the places of tables; changes stay in this object.

    ``tables``: the text of a name (`split_name`), or its parts, to a path or URI.  ``"train.images"`` is the table
    ``images`` of the namespace ``train``.  ``storage_options``: for all tables; never printed.

    >>> from pennon.catalog import NamedTables
    >>> catalog = NamedTables({"train.images": "/data/images.lance"})
    >>> catalog.list_namespaces()
    ['train']
    >>> catalog.describe_table(("train", "images")).location
    '/data/images.lance'
    """

    def __init__(
        self,
        tables: Mapping[str | TableName, str | os.PathLike[str]] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self._options = dict(storage_options or {})
        self._tables: dict[TableName, TableEntry] = {}
        self._namespaces: dict[TableName, dict[str, str]] = {}
        for key, location in (tables or {}).items():
            name = split_name(key) if isinstance(key, str) else key
            name = check_parts(name, is_table=True)
            for depth in range(1, len(name)):
                self._namespaces.setdefault(name[:depth], {})
            self._add(name, os.fspath(location), None)

    def __repr__(self) -> str:
        """Return the names; never the options."""
        return f"NamedTables({[join_name(name) for name in sorted(self._tables)]!r})"

    def list_namespaces(self, parent: TableName = ()) -> list[str]:
        """Return the names of the namespaces directly below ``parent``, sorted."""
        parent = self._known(parent)
        return sorted(name[-1] for name in self._namespaces if name[:-1] == parent)

    def describe_namespace(self, name: TableName) -> dict[str, str]:
        """Return the properties of a namespace."""
        return dict(self._namespaces.get(self._known(name), {}))

    def create_namespace(
        self,
        name: TableName,
        properties: Mapping[str, str] | None = None,
        *,
        exist_ok: bool = False,
    ) -> None:
        """Make a namespace; its parent must exist."""
        name = check_parts(name, is_table=False)
        self._known(name[:-1])
        if not name or name in self._namespaces:
            if exist_ok:
                return
            message = f"there is a namespace {join_name(name) or '()'} already"
            raise AlreadyExistsError(message)
        self._namespaces[name] = dict(properties or {})

    def drop_namespace(self, name: TableName, *, missing_ok: bool = False) -> None:
        """Remove an empty namespace; one that holds tables or namespaces is an `ArgumentError`."""
        name = check_parts(name, is_table=False)
        if missing_ok and name and name not in self._namespaces:
            return
        self._known(name)
        is_full = any(each[:-1] == name for each in (*self._namespaces, *self._tables))
        if not name or is_full:
            message = f"the namespace {join_name(name) or '()'} is not empty, or is the root"
            raise ArgumentError(message)
        del self._namespaces[name]

    def list_tables(self, namespace: TableName = ()) -> list[str]:
        """Return the names of the tables directly in ``namespace``, sorted.  No table is opened."""
        namespace = self._known(namespace)
        return sorted(name[-1] for name in self._tables if name[:-1] == namespace)

    def describe_table(self, name: TableName) -> TableEntry:
        """Return the entry of a table.  The table is not opened."""
        name = check_parts(name, is_table=True)
        found = self._tables.get(name)
        if found is None:
            message = f"there is no table {join_name(name)}"
            raise NotFoundError(message)
        return found

    def declare_table(
        self,
        name: TableName,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableEntry:
        """Take a name for a table that will be written to ``location``, which must be given."""
        if location is None:
            message = f"names alone give no place to write {join_name(name)} to; give its location"
            raise ArgumentError(message)
        return self._add(self._free(name), location, properties)

    def register_table(
        self, name: TableName, location: str, properties: Mapping[str, str] | None = None
    ) -> TableEntry:
        """Give a name to a table that exists at ``location``."""
        name = self._free(name)
        if read_newest_if_any(open_store(location, self._options)) is None:
            message = f"there is no table to register as {join_name(name)}"
            raise NotFoundError(message)
        return self._add(name, location, properties)

    def deregister_table(self, name: TableName) -> TableEntry:
        """Forget a table's name; its files stay."""
        found = self.describe_table(name)
        del self._tables[found.name]
        return found

    def drop_table(self, name: TableName) -> TableEntry:
        """Forget a table's name, and delete its files."""
        found = self.describe_table(name)
        drop_table(open_store(found.location, self._options), missing_ok=True)
        return self.deregister_table(found.name)

    def rename_table(self, name: TableName, new_name: TableName) -> TableEntry:
        """Give a table another name."""
        found = self.describe_table(name)
        if found.name == tuple(new_name):
            return found
        made = replace(found, name=self._free(new_name))
        self._tables[made.name] = made
        del self._tables[found.name]
        return made

    def _known(self, name: TableName) -> TableName:
        """Return the name of a namespace that exists."""
        name = check_parts(name, is_table=False)
        if name and name not in self._namespaces:
            message = f"there is no namespace {join_name(name)}"
            raise NotFoundError(message)
        return name

    def _free(self, name: TableName) -> TableName:
        """Return the name of a table that does not exist yet, in a namespace that does."""
        name = check_parts(name, is_table=True)
        self._known(name[:-1])
        if name in self._tables:
            message = f"there is a table {join_name(name)} already"
            raise AlreadyExistsError(message)
        return name

    def _add(
        self, name: TableName, location: str, properties: Mapping[str, str] | None
    ) -> TableEntry:
        made = TableEntry(name, location, dict(self._options), dict(properties or {}))
        self._tables[name] = made
        return made
