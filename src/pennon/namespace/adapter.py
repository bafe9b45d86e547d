"""A server of the REST specification in this process: it shows a namespace to REST clients, for tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from pennon.catalog.rest_client import JSON
from pennon.core.units import MIB
from pennon.namespace.connect import connect
from pennon.namespace.failures import INTERNAL, INVALID, UNSUPPORTED, failure
from pennon.namespace.models import LanceNamespaceError, model
from pennon.namespace.routes import ROUTES, Body, request_name

_ARROW_FILE: Final = "application/vnd.apache.arrow.file"
_MOST_BYTES: Final = 256 * MIB
_PORT: Final = 2333
"""The port of the specification."""
_STATUS: Final = {
    **dict.fromkeys((1, 4, 6, 8, 10, 11, 12, 22), 404),
    **dict.fromkeys((2, 3, 5, 7, 9, 14, 19, 23), 409),
    UNSUPPORTED: 501,
    INVALID: 400,
    15: 403,
    16: 401,
    17: 503,
    20: 400,
    21: 429,
}
_OPERATIONS: Final = {(route.kind, route.verb): name for name, route in ROUTES.items()}


class RestAdapter:
    """Serves a namespace at ``http://host:port`` while it is open; for tests of REST clients.

    ``namespace_client_impl``: ``dir``, ``rest`` or the name of a class, as in `connect`.  ``port``: 0 takes a free one.  There is
    no authentication, so do not serve other machines.

    >>> from pennon.namespace import ListTablesRequest, RestAdapter, RestNamespace
    >>> with RestAdapter("dir", {"root": uri}, port=0) as server:
    ...     client = RestNamespace(uri=f"http://127.0.0.1:{server.port}")
    ...     client.list_tables(ListTablesRequest(id=[])).tables
    []
    """

    def __init__(
        self,
        namespace_client_impl: str,
        namespace_client_properties: Mapping[str, Any] | None = None,
        session: Any = None,
        host: str | None = None,
        port: int | None = None,
    ) -> None:
        self.host = host or "127.0.0.1"
        self.namespace_client_impl = namespace_client_impl
        self._port = _PORT if port is None else port
        self._namespace = connect(namespace_client_impl, dict(namespace_client_properties or {}))
        self._server: ThreadingHTTPServer | None = None

    @property
    def port(self) -> int:
        """Return the port that the server listens on, 0 before it starts."""
        return 0 if self._server is None else int(self._server.server_address[1])

    def start(self) -> None:
        """Start to serve, in threads of this process."""
        if self._server is None:
            self._server = _Server((self.host, self._port), self._namespace)
            threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Stop to serve."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def __enter__(self) -> Self:
        """Start the server."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self.stop()

    def __repr__(self) -> str:
        """Return host and port."""
        return f"RestAdapter(host={self.host!r}, port={self.port})"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], namespace: Any) -> None:
        self.namespace = namespace
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: _Server
    timeout = 60

    def do_GET(self) -> None:
        """Answer a request without a body."""
        self._answer(None)

    def do_POST(self) -> None:
        """Answer a request with a body."""
        length = self.headers.get("Content-Length", "0")
        size_bytes = int(length) if length.isdecimal() else _MOST_BYTES + 1
        if size_bytes > _MOST_BYTES:
            self.close_connection = True
            self._fail(failure(INVALID, f"a body has at most {_MOST_BYTES // MIB} MiB"))
            return
        self._answer(self.rfile.read(size_bytes))

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def _answer(self, body: bytes | None) -> None:
        try:
            operation, request = self._parse(body)
            ask = getattr(self.server.namespace, operation)
            route = ROUTES[operation]
            found = ask(request, body) if route.sends is Body.ARROW else ask(request)
        except LanceNamespaceError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - a server answers, whatever happens
            self._fail(failure(INTERNAL, f"{type(error).__name__}: {error}"))
        else:
            self._send_answer(route.gives, found)

    def _parse(self, body: bytes | None) -> tuple[str, Any]:
        """Return the operation and the request of a path, a query and a body."""
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        version, kind, text, verb = _segments(parts.path)
        operation = _OPERATIONS.get((kind, verb)) if version == "v1" else None
        route = ROUTES.get(operation or "")
        if operation is None or route is None or (body is None) != (route.sends is Body.NONE):
            raise failure(UNSUPPORTED, f"{self.command} {parts.path[:200]}")
        delimiter = query.pop("delimiter", "$") or "$"
        fields = _json_fields(body) if route.sends is Body.JSON else _query_fields(query)
        name = [] if text == delimiter else text.split(delimiter)
        try:
            return operation, model(request_name(operation)).from_dict({**fields, "id": name})
        except (ValueError, TypeError) as error:
            raise failure(INVALID, str(error)[:500]) from error

    def _send_answer(self, gives: Body, found: Any) -> None:
        if gives is Body.NONE:
            self._send(200, b"", JSON)
        elif gives is Body.ARROW:
            self._send(200, found.data, _ARROW_FILE)
        elif gives is Body.NUMBER:
            self._send(200, str(found.count).encode(), JSON)
        else:
            self._send(200, json.dumps(found.to_dict()).encode(), JSON)

    def _fail(self, error: Any) -> None:
        code = int(error.code)
        body = json.dumps({"error": str(error), "code": code}).encode()
        self._send(_STATUS.get(code, 500), body, JSON)

    def _send(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _segments(path: str) -> tuple[str, str, str, str]:
    """Return version, kind, id and verb of a path such as ``/v1/table/train%24images/describe``."""
    version, _, rest = path.lstrip("/").partition("/")
    kind, _, rest = rest.partition("/")
    text, _, verb = rest.partition("/")
    return version, kind, unquote(text), verb.rstrip("/")


def _json_fields(body: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise failure(INVALID, "the body must be a JSON object")
    return found


def _query_fields(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a query: texts, and JSON where a text is a number, a boolean, an object or a list."""
    return {key: _value(text) for key, text in query.items()}


def _value(text: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(found, str) else found
