"""``lance.namespace.RestNamespace``: a client of REST servers, under pylance's name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pennon.catalog.rest_client import ARROW_STREAM, JSON, RestClient
from pennon.errors import ArgumentError
from pennon.namespace.context import headers_of, provider_of
from pennon.namespace.failures import as_failures
from pennon.namespace.models import LanceNamespace, answer
from pennon.namespace.routes import ROUTES, Body

_NOT_SENT: Final = ("id", "identity", "context")


class RestNamespace(LanceNamespace):  # type: ignore[misc, unused-ignore]
    """The namespaces and tables of a REST server, with the methods of ``lance_namespace.LanceNamespace``.

    Properties, all text: ``uri``, ``delimiter`` (``$``), ``header.*`` (HTTP headers, behind the prefix), ``tls.*``
    (`pennon.catalog.rest_client.RestClient`).  ``context_provider``: gives headers for each request.  Properties are never
    printed.

    >>> from pennon.namespace import RestNamespace
    >>> RestNamespace(uri="http://localhost:4099").namespace_id()
    'RestNamespace { endpoint: "http://localhost:4099", delimiter: "$" }'
    """

    def __init__(self, context_provider: Any = None, **properties: Any) -> None:
        texts = {str(key): str(value) for key, value in properties.items()}
        self._provider = context_provider or provider_of(texts)
        if "uri" not in texts:
            message = "Missing required property 'uri' for REST namespace"
            raise ArgumentError(message)
        self._client = RestClient(
            texts["uri"],
            texts.get("delimiter", "$"),
            {**_behind(texts, "header."), **_behind(texts, "headers.")},
            _behind(texts, "tls."),
        )

    def namespace_id(self) -> str:
        """Return a text with the server, without user and password."""
        client = self._client
        return (
            f'RestNamespace {{ endpoint: "{client.shown_uri}", delimiter: "{client.delimiter}" }}'
        )

    def __repr__(self) -> str:
        """Return `namespace_id`."""
        return f"RestNamespace({self.namespace_id()})"

    def create_empty_table(self, request: Any) -> Any:
        """Take a name for a table that will be written; the old name of ``declare_table``."""
        return self._ask("declare_table", request)

    def _ask(self, operation: str, request: Any, data: bytes | None = None) -> Any:
        """Return the answer to an operation's request."""
        route = ROUTES[operation]
        name = tuple(request.id or ())
        fields = request.to_dict()
        sent = {key: value for key, value in fields.items() if key not in _NOT_SENT}
        headers = headers_of(self._provider, operation, self._client.delimiter.join(name))
        headers |= _behind(request.context or {}, "header.")
        with as_failures(about_namespace=route.kind == "namespace"):
            if route.kind == "table" and not name:
                message = "Table ID cannot be empty"
                raise ArgumentError(message)
            path = self._client.path(route.kind, name, route.verb)
            if route.sends is Body.JSON:
                text = json.dumps({**sent, "id": list(name)}).encode()
                found = self._client.send(path, text, JSON, None, headers)
            else:
                body = (data or b"") if route.sends is Body.ARROW else None
                found = self._client.send(path, body, ARROW_STREAM, sent, headers)
            return _answer(operation, found)


def _behind(texts: Mapping[str, str], prefix: str) -> dict[str, str]:
    found = texts.items()
    return {key.removeprefix(prefix): text for key, text in found if key.startswith(prefix)}


def _answer(operation: str, data: bytes) -> Any:
    """Return the response that the bytes of an answer are."""
    route = ROUTES[operation]
    if route.gives is Body.NONE:
        return answer(route.response)
    if route.gives is Body.ARROW:
        return answer(route.response, data=data)
    try:
        found = json.loads(data) if data.strip() else {}
    except (ValueError, RecursionError) as error:
        message = "the server gave an answer that is no JSON"
        raise ArgumentError(message) from error
    if route.gives is Body.NUMBER:
        return answer(route.response, count=found)
    return answer(route.response, **found)


def _operation(name: str) -> Any:
    """Return the method of an operation."""

    def ask(self: RestNamespace, request: Any) -> Any:
        return self._ask(name, request)

    def ask_with_data(self: RestNamespace, request: Any, request_data: bytes) -> Any:
        return self._ask(name, request, request_data)

    made = ask_with_data if ROUTES[name].sends is Body.ARROW else ask
    made.__name__, made.__qualname__ = name, f"RestNamespace.{name}"
    made.__doc__ = f"Send the request of {name} to the server, and return its answer."
    return made


for _name in ROUTES:
    setattr(RestNamespace, _name, _operation(_name))
