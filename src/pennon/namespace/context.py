"""Context that a program gives to each request, such as an HTTP header with a fresh token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from pennon.errors import ArgumentError

_PREFIX: Final = "dynamic_context_provider."


class DynamicContextProvider(ABC):
    """Gives context for each operation: keys that begin with ``headers.`` become HTTP headers.

    >>> from pennon.namespace import DynamicContextProvider
    >>> class Token(DynamicContextProvider):
    ...     def provide_context(self, info):
    ...         return {"headers.Authorization": "Bearer fresh"}
    >>> Token().provide_context({"operation": "list_tables", "object_id": "train"})
    {'headers.Authorization': 'Bearer fresh'}
    """

    @abstractmethod
    def provide_context(self, info: dict[str, str]) -> dict[str, str]:
        """Return the context of one operation: ``info`` has its name, ``operation``, and the ``object_id``."""


def provider_of(properties: Mapping[str, str]) -> Any:
    """Return the provider that properties name by ``dynamic_context_provider.impl``; None if they name none.

    The class is imported by its full name; other keys behind the prefix are its arguments.  Raises ArgumentError
    if there is no such class.
    """
    name = properties.get(f"{_PREFIX}impl")
    if not name:
        return None
    module, _, attribute = name.rpartition(".")
    try:
        made = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        message = f"Failed to import the context provider {name!r}: {error}"
        raise ArgumentError(message) from error
    given = {
        key.removeprefix(_PREFIX): value
        for key, value in properties.items()
        if key.startswith(_PREFIX) and key != f"{_PREFIX}impl"
    }
    return made(**given)


def headers_of(provider: Any, operation: str, object_id: str) -> dict[str, str]:
    """Return the HTTP headers that a provider gives for an operation."""
    if provider is None:
        return {}
    found = provider.provide_context({"operation": operation, "object_id": object_id})
    return {
        key.removeprefix("headers."): value
        for key, value in found.items()
        if key.startswith("headers.")
    }
