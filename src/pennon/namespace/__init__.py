"""Namespaces of tables under the interface of ``lance_namespace`` (``lance.namespace``).

The classes of requests and responses are those of that package, under the same names: ``pennon.namespace.ListTablesRequest``.
`pennon.catalog` needs no other package, and has plain arguments.
"""

from __future__ import annotations

from typing import Any

from pennon.namespace.adapter import RestAdapter
from pennon.namespace.catalog_namespace import CatalogNamespace
from pennon.namespace.connect import connect
from pennon.namespace.context import DynamicContextProvider
from pennon.namespace.directory import DirectoryNamespace
from pennon.namespace.models import LanceNamespace, model
from pennon.namespace.rest import RestNamespace

__all__ = [
    "CatalogNamespace",
    "DirectoryNamespace",
    "DynamicContextProvider",
    "LanceNamespace",
    "RestAdapter",
    "RestNamespace",
    "connect",
]


def __getattr__(name: str) -> Any:
    """Return a class of the package ``lance_namespace``, such as a request or a response."""
    if name.startswith("_"):
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return model(name)
