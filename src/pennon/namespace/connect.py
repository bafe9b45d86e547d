"""``connect``: a namespace by the short name of its kind, or by the full name of its class."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from pennon.errors import ArgumentError
from pennon.namespace.models import LanceNamespace

_KINDS: Final = {
    "dir": "pennon.namespace.directory.DirectoryNamespace",
    "rest": "pennon.namespace.rest.RestNamespace",
}


def connect(impl: str, properties: Mapping[str, Any]) -> Any:
    """Return a namespace: ``dir`` is a folder, ``rest`` a REST server; any other text is the full name of a class.

    Raises ArgumentError if there is no such class, or it is no namespace.

    >>> from pennon.namespace import connect
    >>> connect("dir", {"root": "/data"}).namespace_id()
    'DirectoryNamespace { root: "/data" }'
    """
    name = _KINDS.get(impl, impl)
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        message = (
            f"{impl[:200]!r} is no kind of namespace: 'dir', 'rest', or the full name of a class"
        )
        raise ArgumentError(message) from error
    if not (isinstance(found, type) and issubclass(found, LanceNamespace)):
        message = f"the class {name[:200]!r} is no LanceNamespace"
        raise ArgumentError(message)
    return found(**{str(key): value for key, value in properties.items()})
