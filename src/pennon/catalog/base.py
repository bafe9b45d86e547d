"""Names of tables: a catalog finds the location of a table by its name.

A name is a tuple of strings: the namespaces from the outside in, then the table.  ``("train", "images")`` is the
table ``images`` of the namespace ``train``; ``()`` is the root namespace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from pennon.errors import NotFoundError

TableName = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table that a catalog knows: its name, its location, and how to open it.

    Attributes:
        name: Namespaces from the outside in, then the table's own name.
        location: The URI or path that `pennon.dataset` opens.
        storage_options: Options and credentials of its store; never printed.
        properties: What users keep about the table in the catalog.
        declared: True if only the name is taken: no table has been written to the location yet.
    """

    name: TableName
    location: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict)
    declared: bool = False


class Catalog(ABC):
    """Finds tables by name.  A catalog holds namespaces, which hold tables and further namespaces.

    Each method raises `NotFoundError` for a name that does not exist, `AlreadyExistsError` for one that is taken,
    `UnsupportedError` for what this kind of catalog cannot do, `ArgumentError` for a name that no catalog can hold.
    """

    @abstractmethod
    def list_namespaces(self, parent: TableName = ()) -> list[str]:
        """Return the names of the namespaces directly below ``parent``, sorted."""

    @abstractmethod
    def describe_namespace(self, name: TableName) -> dict[str, str]:
        """Return the properties of a namespace."""

    @abstractmethod
    def create_namespace(
        self,
        name: TableName,
        properties: Mapping[str, str] | None = None,
        *,
        exist_ok: bool = False,
    ) -> None:
        """Make a namespace; its parent must exist."""

    @abstractmethod
    def drop_namespace(self, name: TableName, *, missing_ok: bool = False) -> None:
        """Remove an empty namespace; one that holds tables or namespaces is an `ArgumentError`."""

    @abstractmethod
    def list_tables(self, namespace: TableName = ()) -> list[str]:
        """Return the names of the tables directly in ``namespace``, sorted.  No table is opened."""

    @abstractmethod
    def describe_table(self, name: TableName) -> TableEntry:
        """Return the entry of a table.  The table is not opened."""

    @abstractmethod
    def declare_table(
        self,
        name: TableName,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableEntry:
        """Take a name for a table that will be written: the entry says where to write it."""

    @abstractmethod
    def register_table(
        self, name: TableName, location: str, properties: Mapping[str, str] | None = None
    ) -> TableEntry:
        """Give a name to a table that exists at ``location``."""

    @abstractmethod
    def deregister_table(self, name: TableName) -> TableEntry:
        """Forget a table's name; its files stay."""

    def restore_table(self, name: TableName) -> TableEntry:
        """Take back a name that `deregister_table` forgot, for the table whose files stayed where they were.

        Catalogs that forget such places raise `NotFoundError`: `register_table` says where the table is.
        """
        message = (
            f"no deregistered table {'.'.join(name)} is known; register_table says where it is"
        )
        raise NotFoundError(message)

    @abstractmethod
    def drop_table(self, name: TableName) -> TableEntry:
        """Forget a table's name, and delete its files."""

    @abstractmethod
    def rename_table(self, name: TableName, new_name: TableName) -> TableEntry:
        """Give a table another name."""
