"""An object store for `shapes_object_store`: ``slow_store.py BUCKET`` prints its address, and serves until it is ended.

moto, behind a wait before each answer.  ``POST /-/delay?ms=20`` sets how long that is, and tells the requests and the
bytes answered since the last time; with ``&mb_per_s=50`` all answers together are no faster than that.
Packets go out at once, so that no answer waits for an acknowledgement.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import parse_qs

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

PART_BYTES = 64 << 10
"""So much of an answer waits for the line at once."""


class Handler(WSGIRequestHandler):
    """Sends packets at once, and is silent."""

    disable_nagle_algorithm = True

    def log(self, *_: object) -> None:
        """Say nothing."""


class SlowApp:
    """moto, later."""

    def __init__(self) -> None:
        self.moto: Any = DomainDispatcherApplication(create_backend_app)
        self.seconds = 0.0
        self.bytes_per_second = 0.0
        self.free_at = 0.0
        self.requests = 0
        self.bytes = 0
        self.lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        """Answer a request."""
        if environ["PATH_INFO"] == "/-/delay":
            return self._set_delay(environ, start)
        with self.lock:
            self.requests += 1
        time.sleep(self.seconds)
        return self._slowed(self.moto(environ, start))

    def _slowed(self, answer: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the parts of an answer, each when the line has had the time for it."""
        for part in answer:
            view = memoryview(part)
            for begin in range(0, len(view), PART_BYTES):
                piece = bytes(view[begin : begin + PART_BYTES])
                time.sleep(self._wait_of(len(piece)))
                yield piece

    def _wait_of(self, count: int) -> float:
        with self.lock:
            self.bytes += count
            if not self.bytes_per_second:
                return 0.0
            now = time.monotonic()
            self.free_at = max(self.free_at, now) + count / self.bytes_per_second
            return self.free_at - now

    def _set_delay(self, environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        with self.lock:
            asked = parse_qs(environ["QUERY_STRING"])
            self.seconds = float(asked["ms"][0]) / 1e3
            self.bytes_per_second = 1e6 * float(asked.get("mb_per_s", ["0"])[0])
            body = json.dumps({"requests": self.requests, "bytes": self.bytes}).encode()
            self.requests = self.bytes = 0
        start("200 OK", [("Content-Length", str(len(body)))])
        return [body]


def main(bucket: str) -> None:
    """Serve an empty bucket."""
    server = make_server("127.0.0.1", 0, SlowApp(), threaded=True, request_handler=Handler)
    threading.Thread(target=server.serve_forever).start()
    auth = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request"
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    connection.request("PUT", f"/{bucket}", headers={"Authorization": auth})
    connection.getresponse().read()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
