"""The server of the page: a thread for each connection of a browser, on 127.0.0.1 alone.

A request is answered from a fixed list of addresses: files of the page, JSON (`pennon.view.routes`), images and sounds.
No address is ever a path of the machine.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from threading import BoundedSemaphore
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from pennon.errors import LanceError, NotFoundError, printable
from pennon.view import rows
from pennon.view.asked import Asked
from pennon.view.guard import DATA_POLICY, HEADERS, POLICY, Guard
from pennon.view.opened import ViewedTable
from pennon.view.routes import ANSWERS, MEDIA, as_json

LOGGER: Final = logging.getLogger("pennon.view")
IDLE_SECONDS: Final = 60
MOST_AT_ONCE: Final = 4
"""So many requests read the table side by side; others wait."""
MAX_PARAMETERS: Final = 32

FILES: Final[Mapping[str, str]] = {
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "dom.js": "text/javascript; charset=utf-8",
    "source.js": "text/javascript; charset=utf-8",
    "draw.js": "text/javascript; charset=utf-8",
    "cells.js": "text/javascript; charset=utf-8",
    "overview.js": "text/javascript; charset=utf-8",
    "data.js": "text/javascript; charset=utf-8",
    "layout.js": "text/javascript; charset=utf-8",
    "versions.js": "text/javascript; charset=utf-8",
    "main.js": "text/javascript; charset=utf-8",
}
"""The files of the page, scripts after those that they import, and their types."""


def read_file(name: str) -> bytes:
    """Return a file of the page."""
    return resources.files("pennon.view").joinpath("static", name).read_bytes()


class PageServer(ThreadingHTTPServer):
    """A server for one table, not yet serving; it closes as a context manager."""

    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, viewed: ViewedTable, port: int = 0) -> None:
        """Bind to a port of 127.0.0.1, by default one that is free."""
        super().__init__(("127.0.0.1", port), PageHandler)
        self.viewed = viewed
        self.guard = Guard(self.server_address[1])
        self.at_once = BoundedSemaphore(MOST_AT_ONCE)
        self.files = {f"/{name}": (kind, read_file(name)) for name, kind in FILES.items()}
        self.files["/"] = self.files["/index.html"]

    @property
    def link(self) -> str:
        """Return the address of the page, with its token."""
        return self.guard.link

    def handle_error(self, request: object, client_address: object) -> None:
        """Log an error of a connection: a browser that went away, mostly."""
        LOGGER.debug("a connection from %s broke off: %s", client_address, sys.exception())


class PageHandler(BaseHTTPRequestHandler):
    """One connection."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version = "pennon"
    sys_version = ""
    timeout = IDLE_SECONDS

    def __getattr__(self, name: str) -> object:
        """Answer every method of a request: `BaseHTTPRequestHandler` looks for one named ``do_`` and the method."""
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def _answer(self) -> None:
        """Answer a request, or refuse it."""
        address = urlsplit(self.path)
        is_file = address.path in self.server.files
        refusal = self.server.guard.refuse(self.command, self.headers, needs_token=not is_file)
        if refusal is not None:
            self.close_connection = True
            self._fail(refusal.status, refusal.message)
        elif is_file:
            kind, data = self.server.files[address.path]
            self._send(HTTPStatus.OK, kind, data, POLICY)
        else:
            self._answer_data(address.path, address.query)

    def _answer_data(self, path: str, query: str) -> None:
        try:
            asked = Asked(dict(parse_qsl(query, max_num_fields=MAX_PARAMETERS)))
            with self.server.at_once:
                kind, data = self._read(path, asked)
        except NotFoundError as error:
            self._fail(HTTPStatus.NOT_FOUND, str(error))
        except (LanceError, ValueError, OSError, NotImplementedError) as error:
            self._fail(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:  # a fault of ours must not take the page away
            LOGGER.warning("the page could not answer %s", path, exc_info=True)
            self._fail(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                f"{type(error).__name__}: a fault of Pennon; please report it",
            )
        else:
            self._send(HTTPStatus.OK, kind, data, DATA_POLICY)

    def _read(self, path: str, asked: Asked) -> tuple[str, bytes]:
        viewed = self.server.viewed
        if path == MEDIA:
            media, data = rows.read_media(viewed.at(asked.number("version", 0, 1 << 62)), asked)
            return media.mime, data
        if path not in ANSWERS:
            message = "there is no such address"
            raise NotFoundError(message)
        return "application/json", as_json(ANSWERS[path](viewed, asked))

    def _fail(self, status: HTTPStatus, message: str) -> None:
        self._send(status, "application/json", as_json({"error": printable(message)}), DATA_POLICY)

    def _send(self, status: HTTPStatus, kind: str, data: bytes, policy: str) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.send_header("Content-Security-Policy", policy)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is no HTTP; nothing of it is repeated."""
        self.close_connection = True
        self._fail(HTTPStatus(code), "this is no request that the page answers")

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: addresses hold filters, and with them values."""
