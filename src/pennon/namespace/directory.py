"""``lance.namespace.DirectoryNamespace``: a folder of tables under pylance's name."""

from __future__ import annotations

from typing import Any, Final

from pennon.catalog.directory import DirectoryCatalog
from pennon.errors import ArgumentError
from pennon.namespace.catalog_namespace import CatalogNamespace
from pennon.namespace.context import provider_of
from pennon.namespace.failures import as_failures

_STORAGE: Final = "storage."


class DirectoryNamespace(CatalogNamespace):
    """The tables of a folder or bucket, with the methods of ``lance_namespace.LanceNamespace``.

    Properties, all text: ``root`` (a path or URI), ``storage.*`` (storage options, behind the prefix),
    ``manifest_enabled`` and ``dir_listing_enabled`` (``"true"`` by default; `DirectoryCatalog` says what they do).  Others are
    accepted and change nothing.  Properties are never printed.

    >>> from pennon.namespace import CreateNamespaceRequest, DirectoryNamespace, ListNamespacesRequest
    >>> tables = DirectoryNamespace(root=uri)
    >>> _ = tables.create_namespace(CreateNamespaceRequest(id=["train"]))
    >>> tables.list_namespaces(ListNamespacesRequest(id=[])).namespaces
    ['train']
    """

    def __init__(
        self, session: Any = None, context_provider: Any = None, **properties: Any
    ) -> None:
        texts = {str(key): str(value) for key, value in properties.items()}
        self._provider = context_provider or provider_of(texts)
        root = texts.get("root")
        if root is None:
            message = "Missing required property 'root' for directory namespace"
            raise ArgumentError(message)
        options = {
            key.removeprefix(_STORAGE): value
            for key, value in texts.items()
            if key.startswith(_STORAGE)
        }
        super().__init__(
            DirectoryCatalog(
                root.rstrip("/") or root,
                options,
                manifest=_is_on(texts, "manifest_enabled"),
                folders=_is_on(texts, "dir_listing_enabled"),
            )
        )

    def namespace_id(self) -> str:
        """Return a text with the root, without user and password."""
        shown = repr(self.catalog).partition("(")[2].rstrip(")")[1:-1]
        return f'DirectoryNamespace {{ root: "{shown}" }}'

    def __repr__(self) -> str:
        """Return `namespace_id`."""
        return f"DirectoryNamespace({self.namespace_id()})"

    def register_table(self, request: Any) -> Any:
        """Give a name to a table that exists, at a path from the root."""
        location = request.location
        with as_failures():
            if "://" in location:
                message = f"Absolute URIs are not allowed for register_table: {location[:200]!r}"
                raise ArgumentError(message)
            if location.startswith("/"):
                message = f"Absolute paths are not allowed for register_table: {location[:200]!r}"
                raise ArgumentError(message)
            if ".." in location:
                message = f"Path traversal is not allowed for register_table: {location[:200]!r}"
                raise ArgumentError(message)
        return super().register_table(request)


def _is_on(properties: dict[str, str], name: str) -> bool:
    return properties.get(name, "true").lower() != "false"
