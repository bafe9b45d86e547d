"""An S3 server in this process: moto, behind one lock."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.unit.io.s3_objects import listing

BUCKET = "bucket"
SECRET = "c0nfidential-key"


class _Quiet(WSGIRequestHandler):
    def log(self, *_: object) -> None:
        """Say nothing."""


@dataclass
class S3Server:
    """moto behind one lock: on its own it checks and sets without one, and two writers can win.

    ``fault`` may answer a request in moto's place: it gets the environment and a function that lets
    moto do the work, and returns a status line, or None to pass the request on.
    """

    app: Any = field(default_factory=lambda: DomainDispatcherApplication(create_backend_app))
    lock: threading.Lock = field(default_factory=threading.Lock)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    fault: Callable[[dict[str, Any], Callable[[], Any]], str | None] | None = None
    port: int = 0

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        with self.lock:
            method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
            self.requests.append((method, path, environ.get("HTTP_RANGE")))
            if self.fault is not None:
                status = self.fault(environ, lambda: list(self.app(environ, lambda *_: None)))
                if status is not None:
                    start(status, [("Content-Length", "0")])
                    return [b""]
            return self._answer(environ, start)

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        page = listing(environ)
        if page is None:
            return list(self.app(environ, start))
        start("200 OK", [("Content-Type", "application/xml"), ("Content-Length", str(len(page)))])
        return [page]

    def send(self, path: str, headers: dict[str, str]) -> None:
        """Do what obstore has no verb for: PUT ``path``, without a body."""
        auth = "AWS4-HMAC-SHA256 Credential=identifier/20260101/us-east-1/s3/aws4_request"
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("PUT", path, headers={"Authorization": auth, **headers})
        assert connection.getresponse().status == 200
        connection.close()

    def make_public(self, path: str) -> None:
        """Let anybody read one object."""
        self.send(f"{path}?acl", {"x-amz-acl": "public-read"})

    @property
    def options(self) -> dict[str, str]:
        """Storage options with pylance's keys."""
        return {
            "aws_access_key_id": "identifier",
            "aws_secret_access_key": SECRET,
            "aws_endpoint": f"http://127.0.0.1:{self.port}",
            "aws_region": "us-east-1",
            "allow_http": "true",
        }


@contextlib.contextmanager
def serving_s3() -> Iterator[S3Server]:
    """Serve an empty bucket until the end of the block."""
    one = S3Server()
    server = make_server("127.0.0.1", 0, one, threaded=True, request_handler=_Quiet)
    one.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    one.send(f"/{BUCKET}", {})
    try:
        yield one
    finally:
        server.shutdown()
        thread.join()
