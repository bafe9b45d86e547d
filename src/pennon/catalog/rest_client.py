"""Requests to a lance-namespace REST server: names in the path, JSON or Arrow streams in the body.

::

    POST /v1/table/train$images/describe          {"check_declared": true}   → {"location": …}
    GET  /v1/namespace/train/table/list?limit=10                             → {"tables": […], "page_token": …}
    404                                                                      → {"error": "…", "code": 4}

The id ``$`` alone is the root namespace.  Redirects are not followed, for they would carry credentials to other hosts.

Source: the lance-namespace specification, "Lance REST Namespace".
"""

from __future__ import annotations

import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final
from urllib.parse import quote, urlencode, urlsplit

from pennon.catalog.base import TableName
from pennon.catalog.table_names import check_parts
from pennon.core.units import MIB
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    LanceError,
    NotFoundError,
    RetryableConflict,
    StoreError,
    UnsupportedError,
)

JSON: Final = "application/json"
ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"
_MOST_BYTES: Final = 1024 * MIB
_MOST_ERROR_BYTES: Final = 1 << 16
_SHOWN: Final = 500
_USER: Final = re.compile(r"(?<=://)[^/@]*@")
_BY_CODE: Final[Mapping[int, type[LanceError]]] = {
    0: UnsupportedError,
    **dict.fromkeys((1, 4, 6, 8, 10, 11, 12, 22), NotFoundError),
    **dict.fromkeys((2, 5, 7, 9, 23), AlreadyExistsError),
    **dict.fromkeys((3, 13, 19, 20), ArgumentError),
    14: RetryableConflict,
}
"""The specification's error codes; all others are the server's fault."""
_WORDS: Final[Mapping[int, str]] = {
    0: "not supported",
    1: "namespace not found",
    2: "namespace already exists",
    3: "namespace not empty",
    4: "table not found",
    5: "table already exists",
    13: "invalid input",
    14: "concurrent change",
    15: "permission denied",
    16: "not authenticated",
    17: "service unavailable",
    21: "too many requests",
}
_BY_STATUS: Final[Mapping[int, int]] = {
    400: 13,
    401: 16,
    403: 15,
    404: 4,
    409: 14,
    429: 21,
    501: 0,
    503: 17,
}
"""The code of an answer that has none."""


class RestError(Exception):
    """The error that a server answered: its code by the specification, and its text without credentials."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    def as_pennon(self) -> LanceError:
        """Return Pennon's error of the same kind."""
        kind = _WORDS.get(self.code, "server error")
        return _BY_CODE.get(self.code, StoreError)(f"the catalog's server says: {kind}: {self}")


@dataclass(frozen=True, slots=True)
class RestClient:
    """A client of one server; it holds no connection, and prints no credentials.

    ``headers`` are sent with each request.  ``tls``: ``ssl_ca_cert``, ``cert_file``, ``key_file`` (paths), and
    ``assert_hostname`` (``"false"`` does not compare the host's name).
    """

    uri: str = field(repr=False)
    delimiter: str = "$"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        """Check the URI: only servers of http and https are asked."""
        parts = urlsplit(self.uri)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            message = f"a REST catalog has a URI such as https://host/path, not {self.shown_uri!r}"
            raise ArgumentError(message)
        if "@" in parts.netloc:
            message = "the URI of a REST catalog has no user and password; give them as a header: Authorization"
            raise ArgumentError(message)
        if not self.delimiter:
            message = "the delimiter of names must not be empty"
            raise ArgumentError(message)

    @property
    def shown_uri(self) -> str:
        """Return the URI without user and password, and without a query."""
        return _USER.sub("", self.uri).partition("?")[0]

    def path(self, kind: str, name: TableName, verb: str) -> str:
        """Return the path of a request about a ``table`` or ``namespace``.

        Raises ArgumentError for a part that has the delimiter.
        """
        parts = check_parts(name, is_table=False)
        for part in parts:
            if self.delimiter in part:
                message = f"the part {part[:100]!r} of a name has the server's delimiter {self.delimiter!r}"
                raise ArgumentError(message)
        text = self.delimiter.join(parts) or self.delimiter
        return f"/v1/{kind}/{quote(text, safe='')}/{verb}"

    def call(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Send a request with a JSON body, or a GET without one, and return the JSON object of the answer.

        Raises RestError for an answer that is an error, StoreError for no answer, or one that is no object.
        """
        data = None if body is None else json.dumps(body).encode()
        answer = self.send(path, data, JSON, query)
        try:
            found = json.loads(answer) if answer.strip() else {}
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            message = "the catalog's server gave an answer that is no JSON object"
            raise StoreError(message)
        return found

    def send(
        self,
        path: str,
        data: bytes | None,
        content_type: str,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send bytes, or a GET if there are none, and return the bytes of the answer; raises as `call`."""
        request = self._request(path, data, content_type, query or {}, headers or {})
        try:
            with self._opener().open(request, timeout=self.timeout_s) as answer:
                return _bytes_of(answer)
        except urllib.error.HTTPError as error:
            failure: Exception = self._error_of(error)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            message = (
                f"the catalog's server {self.shown_uri} did not answer: {self._masked(str(reason))}"
            )
            failure = StoreError(message)
        # Outside of the handler: the original names the URL and the headers of its request.
        raise failure

    def _request(
        self,
        path: str,
        data: bytes | None,
        content_type: str,
        query: Mapping[str, Any],
        headers: Mapping[str, str],
    ) -> urllib.request.Request:
        asked = {name: _text(value) for name, value in query.items() if value is not None}
        if self.delimiter != "$":
            asked["delimiter"] = self.delimiter
        url = f"{self.uri.rstrip('/')}{path}" + (f"?{urlencode(asked)}" if asked else "")
        sent = {"Accept": "*/*", **self.headers, **headers}
        if data is not None:
            sent["Content-Type"] = content_type
        return urllib.request.Request(  # noqa: S310 - the scheme was checked
            url, data, sent, method="GET" if data is None else "POST"
        )

    def _opener(self) -> urllib.request.OpenerDirector:
        context = ssl.create_default_context(cafile=self.tls.get("ssl_ca_cert"))
        if self.tls.get("cert_file"):
            context.load_cert_chain(self.tls["cert_file"], self.tls.get("key_file"))
        if self.tls.get("assert_hostname", "true").lower() == "false":
            context.check_hostname = False
        return urllib.request.build_opener(
            _NoRedirects, urllib.request.HTTPSHandler(context=context)
        )

    def _error_of(self, error: urllib.error.HTTPError) -> RestError:
        """Return the error of an answer, by its code or, if it has none, by its status."""
        with error:
            body = error.read(_MOST_ERROR_BYTES)
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        said = found if isinstance(found, dict) else {}
        code = said.get("code")
        text = said.get("error") or said.get("detail") or f"HTTP status {error.code}"
        known = code if isinstance(code, int) else _BY_STATUS.get(error.code, 18)
        if str(text).startswith("Not supported"):
            known = 0  # pylance 14.0.2 gives the code of a fault of the server
        return RestError(known, self._masked(str(text)))

    def _masked(self, text: str) -> str:
        """Return the beginning of a text without the credentials of the request."""
        for secret in self.headers.values():
            for each in (secret, secret.rpartition(" ")[2]):
                if len(each) > 3:
                    text = text.replace(each, "***")
        return _USER.sub("", text)[:_SHOWN]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for an error."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return None: no other request is made."""


def _bytes_of(answer: IO[bytes]) -> bytes:
    found = answer.read(_MOST_BYTES + 1)
    if len(found) > _MOST_BYTES:
        message = f"the catalog's server gave an answer of more than {_MOST_BYTES // MIB} MiB"
        raise ValueError(message)
    return found


def _text(value: Any) -> str:
    """Return a value as queries have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)
