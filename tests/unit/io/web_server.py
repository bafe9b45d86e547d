"""A web server on loopback: files by name, ranges of them, and answers that go wrong.

It lists nothing, takes nothing, and has never heard of tables.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pennon.io import open_store

RESET = "reset"
"""The connection is torn down instead of an answer."""
HALF = "half"
"""The connection is torn down after half of the answer's body."""


@dataclass
class WebServer:
    """What is served: ``folder``.  ``faults`` answer requests first, one each, then none."""

    folder: Path
    port: int = 0
    names_states: bool = False
    """Send an ETag, so that a client can go on in the middle."""
    knows_ranges: bool = True
    """Else an answer is a whole file, whatever was asked."""
    faults: list[int | str] = field(default_factory=list)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """The address of the folder."""
        return f"http://127.0.0.1:{self.port}"

    def open(self, **options: str) -> Any:
        """Open the folder as a store."""
        return open_store(self.url, options)

    def begin(self, method: str, path: str, span: str | None) -> int | str | None:
        """Note a request; return what is to go wrong with it."""
        with self.lock:
            self.requests.append((method, path, span))
            return self.faults.pop(0) if self.faults else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: WebServer

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer with a file, or a range of one."""
        span = self.headers.get("Range")
        fault = self.site.begin(self.command, self.path, span)
        if fault == RESET:
            self._tear_down()
        elif isinstance(fault, int):
            self._answer(fault, b"")
        else:
            self._send_file(span, half=fault == HALF)

    do_HEAD = do_GET  # noqa: N815 - what http.server calls it

    def _send_file(self, span: str | None, *, half: bool) -> None:
        try:
            file = (self.site.folder / unquote(self.path).lstrip("/")).open("rb")
        except (FileNotFoundError, IsADirectoryError):
            self._answer(404, b"")
            return
        span = span if self.site.knows_ranges else None
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", span or "")
        with file:
            if asked is None:
                self._answer(200, file.read(), half=half)
                return
            size = os.fstat(file.fileno()).st_size
            first, last = int(asked[1]), min(int(asked[2]), size - 1)
            file.seek(first)
            data = file.read(last + 1 - first)
            self._answer(206, data, f"bytes {first}-{last}/{size}", half=half)

    def _answer(self, status: int, body: bytes, span: str = "", *, half: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT")
        if self.site.names_states:
            self.send_header("ETag", '"one"')
        if span:
            self.send_header("Content-Range", span)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body[: len(body) // 2] if half else body)
        if half:
            self._tear_down()

    def _tear_down(self) -> None:
        """Close so that the other side gets a reset, not an end."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that went."""


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[WebServer]:
    """Serve a folder until the end of the block."""
    site = WebServer(folder)
    handler = type("Handler", (_Handler,), {"site": site})
    server = _Server(("127.0.0.1", 0), handler)
    site.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
