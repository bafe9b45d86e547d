"""A lance-namespace REST server as a catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pennon.catalog.base import Catalog, TableEntry, TableName
from pennon.catalog.rest_client import RestClient, RestError
from pennon.catalog.table_names import check_parts, join_name
from pennon.errors import AlreadyExistsError, NotFoundError, StoreError


class RestCatalog(Catalog):
    """The tables of a server of the lance-namespace REST specification, by name.

    ``uri``: ``http://`` or ``https://``.  ``storage_options``: for the tables; the server's answers add to them.
    ``headers``: sent with each request, such as ``{"Authorization": "Bearer …"}``.  ``delimiter``: what joins the parts
    of a name in requests.  ``tls``: see `pennon.catalog.rest_client.RestClient`.  Options, headers and tokens are never
    printed.

    Raises StoreError if the server does not answer.  No request is made before the first call of a method.

    >>> from pennon.catalog import RestCatalog
    >>> RestCatalog("https://host/catalog", headers={"Authorization": "Bearer secret"})
    RestCatalog('https://host/catalog')
    """

    def __init__(
        self,
        uri: str,
        storage_options: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        delimiter: str = "$",
        tls: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        self._options = dict(storage_options or {})
        self._client = RestClient(uri, delimiter, dict(headers or {}), dict(tls or {}), timeout_s)

    def __repr__(self) -> str:
        """Return the URI, without user and password."""
        return f"RestCatalog({self._client.shown_uri!r})"

    def list_namespaces(self, parent: TableName = ()) -> list[str]:
        """Return the names of the namespaces directly below ``parent``, sorted."""
        return sorted(self._list(parent, "list", "namespaces"))

    def describe_namespace(self, name: TableName) -> dict[str, str]:
        """Return the properties of a namespace."""
        return _texts(self._ask("namespace", name, "describe", {}), "properties")

    def create_namespace(
        self,
        name: TableName,
        properties: Mapping[str, str] | None = None,
        *,
        exist_ok: bool = False,
    ) -> None:
        """Make a namespace; its parent must exist."""
        body = {"mode": "create", "properties": dict(properties or {})}
        try:
            self._ask("namespace", name, "create", body)
        except AlreadyExistsError:
            if not exist_ok:
                raise

    def drop_namespace(self, name: TableName, *, missing_ok: bool = False) -> None:
        """Remove an empty namespace; one that holds tables or namespaces is an `ArgumentError`."""
        try:
            self._ask("namespace", name, "drop", {"mode": "fail", "behavior": "restrict"})
        except NotFoundError:
            if not missing_ok:
                raise

    def list_tables(self, namespace: TableName = ()) -> list[str]:
        """Return the names of the tables directly in ``namespace``, sorted.  No table is opened."""
        return sorted(self._list(namespace, "table/list", "tables"))

    def describe_table(self, name: TableName) -> TableEntry:
        """Return the entry of a table.  The table is not opened."""
        return self._entry(name, self._ask("table", name, "describe", {"check_declared": True}))

    def declare_table(
        self,
        name: TableName,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableEntry:
        """Take a name for a table that will be written: the entry says where to write it."""
        body: dict[str, Any] = {"properties": dict(properties)} if properties else {}
        if location is not None:
            body["location"] = location
        answer = self._ask("table", name, "declare", body)
        return self._entry(name, {"properties": properties, **answer, "is_only_declared": True})

    def register_table(
        self, name: TableName, location: str, properties: Mapping[str, str] | None = None
    ) -> TableEntry:
        """Give a name to a table that exists at ``location``; servers may ask for a path below their root."""
        body: dict[str, Any] = {"location": location, "mode": "create"}
        if properties:
            body["properties"] = dict(properties)
        self._ask("table", name, "register", body)
        return self.describe_table(name)

    def deregister_table(self, name: TableName) -> TableEntry:
        """Forget a table's name; its files stay."""
        entry = self.describe_table(name)
        self._ask("table", name, "deregister", {})
        return entry

    def drop_table(self, name: TableName) -> TableEntry:
        """Forget a table's name, and delete its files."""
        entry = self.describe_table(name)
        self._ask("table", name, "drop", {})
        return entry

    def rename_table(self, name: TableName, new_name: TableName) -> TableEntry:
        """Give a table another name; servers need not be able to."""
        new_name = check_parts(new_name, is_table=True)
        body = {"new_table_name": new_name[-1], "new_namespace_id": list(new_name[:-1])}
        self._ask("table", name, "rename", body)
        return self.describe_table(new_name)

    def _ask(
        self,
        kind: str,
        name: TableName,
        verb: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the answer to a request about a name; raises Pennon's errors."""
        name = check_parts(name, is_table=kind == "table")
        sent = None if body is None else {"id": list(name), **body}
        try:
            return self._client.call(self._client.path(kind, name, verb), sent, query)
        except RestError as error:
            failure = error.as_pennon()
        failure.message = f"{join_name(name) or '()'}: {failure.message}"
        failure.args = (failure.message,)
        raise failure

    def _list(self, namespace: TableName, verb: str, key: str) -> Iterator[str]:
        """Yield the names of all pages of a listing."""
        token, seen = None, set()
        while True:
            answer = self._ask("namespace", namespace, verb, None, {"page_token": token})
            names = answer.get(key) or []
            if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
                raise _wrong(f"{key} must be a list of texts")
            yield from names
            token = answer.get("page_token")
            if not token:
                return
            if not isinstance(token, str) or token in seen:
                raise _wrong("page_token must be a text, and another for each page")
            seen.add(token)

    def _entry(self, name: TableName, answer: Mapping[str, Any]) -> TableEntry:
        location = answer.get("location") or answer.get("table_uri")
        if not isinstance(location, str):
            raise _wrong("location must be a text")
        options = {**self._options, **_texts(answer, "storage_options")}
        is_declared = answer.get("is_only_declared") is True
        properties = _texts(answer, "properties")
        return TableEntry(tuple(name), location, options, properties, declared=is_declared)


def _texts(answer: Mapping[str, Any], key: str) -> dict[str, str]:
    """Return an object of texts of an answer; none is an empty one."""
    found = answer.get(key) or {}
    if not isinstance(found, Mapping) or not all(isinstance(each, str) for each in found.values()):
        raise _wrong(f"{key} must be an object of texts")
    return dict(found)


def _wrong(rule: str) -> StoreError:
    message = f"the catalog's server gave an answer that breaks the specification: {rule}"
    return StoreError(message)
