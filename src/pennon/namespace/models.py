"""The classes of the package ``lance_namespace``: requests, responses, errors, and the base of all namespaces.

They are plain models of the REST specification, without an implementation of Lance; this is the only module of Pennon
that imports them (`docs/decisions/028-models-of-the-rest-specification.md`).
"""

from __future__ import annotations

from typing import Any

from pennon.core.extras import not_installed

try:
    import lance_namespace
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "lance_namespace":
        raise
    raise not_installed("lance_namespace", "pennon.namespace") from None

LanceNamespace = lance_namespace.LanceNamespace
"""The base class of all namespaces."""
LanceNamespaceError = lance_namespace.LanceNamespaceError
from_error_code = lance_namespace.from_error_code


def model(name: str) -> Any:
    """Return a class of requests or responses by its name; raises AttributeError if there is none."""
    return getattr(lance_namespace, name)


def answer(name: str, **fields: Any) -> Any:
    """Return a response of a class; fields that are None are left out."""
    return model(name).from_dict({key: each for key, each in fields.items() if each is not None})
