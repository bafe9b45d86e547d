"""A catalog under the interface of the package ``lance_namespace``: requests in, responses out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from pennon.catalog.base import Catalog, TableEntry, TableName
from pennon.catalog.table_names import join_name
from pennon.dataset.lance_dataset import LanceDataset
from pennon.dataset.open import dataset, write_dataset
from pennon.errors import AlreadyExistsError, ArgumentError, LanceError, NotFoundError
from pennon.namespace import table_data
from pennon.namespace.failures import (
    INVALID,
    NAMESPACE_NOT_EMPTY,
    TABLE_EXISTS,
    as_failures,
    failure,
)
from pennon.namespace.models import LanceNamespace, answer
from pennon.namespace.pages import page_of
from pennon.namespace.schema_json import schema_to_json

T = TypeVar("T")
_CREATES = ("create", "exist_ok", "overwrite")


class CatalogNamespace(LanceNamespace):  # type: ignore[misc, unused-ignore]
    """The namespaces and tables of any `Catalog`, with the methods of ``lance_namespace.LanceNamespace``.

    Errors are those of the package: ``TableNotFoundError`` and so on.  Operations that are not here raise its
    ``UnsupportedOperationError``.

    >>> from pennon.catalog import NamedTables
    >>> from pennon.namespace import CatalogNamespace, ListTablesRequest
    >>> tables = CatalogNamespace(NamedTables({"images": uri}))
    >>> tables.list_tables(ListTablesRequest(id=[])).tables
    ['images']
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def namespace_id(self) -> str:
        """Return a text that says which namespace this is, without credentials."""
        return repr(self.catalog)

    # --- namespaces -------------------------------------------------------------------------------

    def list_namespaces(self, request: Any) -> Any:
        """List the namespaces directly below one."""
        with as_failures(about_namespace=True):
            names = self.catalog.list_namespaces(_id(request))
        shown, token = page_of(names, request)
        return answer("ListNamespacesResponse", namespaces=shown, page_token=token)

    def describe_namespace(self, request: Any) -> Any:
        """Return the properties of a namespace."""
        with as_failures(about_namespace=True):
            found = self.catalog.describe_namespace(_id(request))
        return answer("DescribeNamespaceResponse", properties=found)

    def create_namespace(self, request: Any) -> Any:
        """Make a namespace; mode ``exist_ok`` takes one that is there."""
        with as_failures(about_namespace=True):
            mode = table_data.mode_of(request, ("create", "exist_ok"))
            exist_ok = mode == "exist_ok"
            self.catalog.create_namespace(_id(request), request.properties, exist_ok=exist_ok)
        return answer("CreateNamespaceResponse", properties=request.properties)

    def drop_namespace(self, request: Any) -> Any:
        """Drop an empty namespace; mode ``skip`` passes over one that is not there."""
        name = _id(request)
        with as_failures(about_namespace=True):
            missing_ok = table_data.mode_of(request, ("fail", "skip")) == "skip"
            try:
                self.catalog.drop_namespace(name, missing_ok=missing_ok)
            except ArgumentError as error:
                raise failure(NAMESPACE_NOT_EMPTY if name else INVALID, str(error)) from error
        return answer("DropNamespaceResponse")

    def namespace_exists(self, request: Any) -> Any:
        """Raise an error if there is no such namespace."""
        self.describe_namespace(request)
        return answer("NamespaceExistsResponse")

    # --- tables -----------------------------------------------------------------------------------

    def list_tables(self, request: Any) -> Any:
        """List the tables directly in a namespace."""
        name = _id(request)
        with as_failures(about_namespace=True):
            names = self.catalog.list_tables(name)
            if request.include_declared is False:
                entries = (self.catalog.describe_table((*name, each)) for each in names)
                names = [each.name[-1] for each in entries if not each.declared]
        shown, token = page_of(names, request)
        return answer("ListTablesResponse", tables=shown, page_token=token)

    def describe_table(self, request: Any) -> Any:
        """Return the location of a table; with ``load_detailed_metadata`` its version and schema, too."""
        with as_failures():
            entry = self.catalog.describe_table(_id(request))
            details = self._details(entry, request)
        vended = request.vend_credentials is not False
        return answer(
            "DescribeTableResponse",
            table=entry.name[-1],
            namespace=list(entry.name[:-1]),
            location=entry.location,
            table_uri=entry.location,
            storage_options=dict(entry.storage_options) or None if vended else None,
            properties=dict(entry.properties) or None,
            **details,
        )

    def table_exists(self, request: Any) -> Any:
        """Raise an error if there is no such table."""
        with as_failures():
            self.catalog.describe_table(_id(request))
        return answer("TableExistsResponse")

    def declare_table(self, request: Any) -> Any:
        """Take a name for a table that will be written."""
        with as_failures():
            entry = self.catalog.declare_table(
                _id(request), location=request.location, properties=request.properties
            )
        return _placed("DeclareTableResponse", entry)

    def create_empty_table(self, request: Any) -> Any:
        """Take a name for a table that will be written; the old name of `declare_table`."""
        with as_failures():
            entry = self.catalog.declare_table(
                _id(request),
                location=getattr(request, "location", None),
                properties=request.properties,
            )
        return _placed("DeclareTableResponse", entry)

    def create_table(self, request: Any, request_data: bytes) -> Any:
        """Make a table of an Arrow IPC stream; mode ``exist_ok`` leaves one that is there, ``overwrite`` replaces its rows."""
        name = _id(request)
        with as_failures():
            rows = table_data.read_stream(request_data, "create_table")
            mode = table_data.mode_of(request, _CREATES)
            entry, is_new = self._declared(name, request.properties)
            if not entry.declared and mode == "exist_ok":
                return _placed("CreateTableResponse", entry)
            if not entry.declared and mode == "create":
                raise failure(TABLE_EXISTS, join_name(name))
            options = {**entry.storage_options, **(request.storage_options or {})}
            try:
                write: Literal["create", "overwrite"] = "create" if entry.declared else "overwrite"
                made = write_dataset(rows, entry.location, mode=write, storage_options=options)
            except LanceError:
                if is_new:
                    self.catalog.drop_table(name)
                raise
        return _placed("CreateTableResponse", entry, version=made.version)

    def register_table(self, request: Any) -> Any:
        """Give a name to a table that exists."""
        with as_failures():
            self.catalog.register_table(_id(request), request.location, request.properties)
        return answer(
            "RegisterTableResponse", location=request.location, properties=request.properties
        )

    def deregister_table(self, request: Any) -> Any:
        """Forget a table's name; its files stay."""
        with as_failures():
            entry = self.catalog.deregister_table(_id(request))
        return answer("DeregisterTableResponse", id=list(entry.name), location=entry.location)

    def drop_table(self, request: Any) -> Any:
        """Forget a table's name, and delete its files."""
        with as_failures():
            entry = self.catalog.drop_table(_id(request))
        return answer("DropTableResponse", id=list(entry.name), location=entry.location)

    def rename_table(self, request: Any) -> Any:
        """Give a table another name; without ``new_namespace_id`` in the namespace where it is."""
        name = _id(request)
        space = name[:-1] if request.new_namespace_id is None else tuple(request.new_namespace_id)
        with as_failures():
            self.catalog.rename_table(name, (*space, request.new_table_name))
        return answer("RenameTableResponse")

    # --- rows -------------------------------------------------------------------------------------

    def count_table_rows(self, request: Any) -> Any:
        """Count the rows that pass a condition."""
        return self._on_table(request, lambda ds: table_data.count_table_rows(ds, request))

    def insert_into_table(self, request: Any, request_data: bytes) -> Any:
        """Append the rows of an Arrow IPC stream, or overwrite all."""
        return self._on_table(
            request, lambda ds: table_data.insert_into_table(ds, request, request_data)
        )

    def merge_insert_into_table(self, request: Any, request_data: bytes) -> Any:
        """Merge the rows of an Arrow IPC stream by key columns."""
        return self._on_table(
            request, lambda ds: table_data.merge_insert_into_table(ds, request, request_data)
        )

    def update_table(self, request: Any) -> Any:
        """Set columns to SQL expressions in the rows that pass a condition."""
        return self._on_table(request, lambda ds: table_data.update_table(ds, request))

    def delete_from_table(self, request: Any) -> Any:
        """Delete the rows that pass a condition."""
        return self._on_table(request, lambda ds: table_data.delete_from_table(ds, request))

    def query_table(self, request: Any) -> Any:
        """Return the rows of a query in Arrow's file format."""
        return self._on_table(request, lambda ds: table_data.query_table(ds, request))

    def list_table_versions(self, request: Any) -> Any:
        """List the versions of a table."""
        return self._on_table(request, lambda ds: table_data.list_table_versions(ds, request))

    def restore_table(self, request: Any) -> Any:
        """Make an old version the newest."""
        return self._on_table(request, lambda ds: table_data.restore_table(ds, request))

    def list_table_tags(self, request: Any) -> Any:
        """List the tags of a table."""
        return self._on_table(request, lambda ds: table_data.list_table_tags(ds, request))

    def get_table_tag_version(self, request: Any) -> Any:
        """Return the version that a tag names."""
        return self._on_table(request, lambda ds: table_data.get_table_tag_version(ds, request))

    def create_table_tag(self, request: Any) -> Any:
        """Make a tag."""
        return self._on_table(request, lambda ds: table_data.create_table_tag(ds, request))

    def update_table_tag(self, request: Any) -> Any:
        """Let a tag name another version."""
        return self._on_table(request, lambda ds: table_data.update_table_tag(ds, request))

    def delete_table_tag(self, request: Any) -> Any:
        """Delete a tag."""
        return self._on_table(request, lambda ds: table_data.delete_table_tag(ds, request))

    def alter_table_drop_columns(self, request: Any) -> Any:
        """Drop columns of a table."""
        return self._on_table(request, lambda ds: table_data.alter_table_drop_columns(ds, request))

    # ----------------------------------------------------------------------------------------------

    def _on_table(self, request: Any, work: Callable[[LanceDataset], T]) -> T:
        """Return what ``work`` gives for the table of a request, at its version if it names one."""
        with as_failures():
            if getattr(request, "branch", None) is not None:
                message = (
                    "branches are not served by this operation; open the table by its location"
                )
                raise ArgumentError(message)
            entry = self.catalog.describe_table(_id(request))
            asked = getattr(request, "version", None)
            # What an operation on tags or old versions names is no version to open.
            is_read = type(request).__name__ in {"CountTableRowsRequest", "QueryTableRequest"}
            return work(_opened(entry, asked if is_read else None))

    def _declared(
        self, name: TableName, properties: Mapping[str, str] | None
    ) -> tuple[TableEntry, bool]:
        """Return the entry of a table, and whether its name was taken just now."""
        try:
            return self.catalog.describe_table(name), False
        except NotFoundError:
            pass
        try:
            return self.catalog.declare_table(name, properties=properties), True
        except AlreadyExistsError:
            return self.catalog.describe_table(name), False

    def _details(self, entry: TableEntry, request: Any) -> dict[str, Any]:
        """Return what a description has of the table itself, where that is asked for."""
        if not (request.load_detailed_metadata or request.check_declared):
            return {}
        found: dict[str, Any] = {"is_only_declared": entry.declared}
        if request.load_detailed_metadata and not entry.declared:
            ds = _opened(entry, request.version)
            found |= {"version": ds.version, "schema": schema_to_json(ds.schema)}
        return found


def _id(request: Any) -> TableName:
    """Return the name that a request is about; raises an error of invalid input if it has none."""
    if request.id is None:
        raise failure(INVALID, "the request has no id; [] is the root namespace")
    return tuple(request.id)


def _opened(entry: TableEntry, version: int | None) -> LanceDataset:
    return dataset(entry.location, version, storage_options=dict(entry.storage_options) or None)


def _placed(kind: str, entry: TableEntry, **more: Any) -> Any:
    """Return a response with the location of a table."""
    return answer(
        kind,
        location=entry.location,
        storage_options=dict(entry.storage_options) or None,
        properties=dict(entry.properties) or None,
        **more,
    )
