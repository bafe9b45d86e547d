"""A REST server as a catalog, and what comes of answers that break the specification."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import pennon
from pennon.catalog import Catalog, RestCatalog
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    LanceError,
    NotFoundError,
    RetryableConflict,
    StoreError,
    UnsupportedError,
)
from pennon.namespace import RestAdapter
from tests.unit.catalog.catalog_contract import ROWS, CatalogContract

Answer = tuple[int, bytes]


class TestRestCatalog(CatalogContract):
    """The whole contract, through our own server of a folder."""

    @pytest.fixture(autouse=True)
    def _servers(self, tmp_path: Path) -> Iterator[None]:
        self.folder = tmp_path
        self.servers: list[RestAdapter] = []
        yield
        for server in self.servers:
            server.stop()

    def new_catalog(self) -> Catalog:
        server = RestAdapter("dir", {"root": str(self.folder / uuid.uuid4().hex)}, port=0)
        server.start()
        self.servers.append(server)
        return RestCatalog(f"http://127.0.0.1:{server.port}")

    def test_deregistered_table_keeps_its_files_and_is_registered_again(self) -> None:
        """The server's root takes paths from its root alone, as pylance's does."""
        catalog = self.new_catalog()
        catalog.create_namespace(("ns",))
        location = self.written(catalog, ("ns", "t"))
        assert catalog.deregister_table(("ns", "t")).location == location
        assert pennon.dataset(location).count_rows() == ROWS.num_rows
        folder = location.rpartition("/")[2]
        assert catalog.register_table(("ns", "u"), folder).location == location
        with pytest.raises(ArgumentError, match="Absolute"):
            catalog.register_table(("ns", "v"), location)


@contextmanager
def serving(answer: Callable[[str, dict[str, str], bytes], Answer]) -> Iterator[str]:
    """A server that gives any answer to any request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, data = answer(self.path, dict(self.headers), body)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", data.decode())
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_rest_catalog_sends_names_headers_and_delimiter() -> None:
    seen: list[tuple[str, str | None, Any]] = []

    def answer(path: str, headers: dict[str, str], body: bytes) -> Answer:
        seen.append((path, headers.get("Authorization"), json.loads(body or b"null")))
        return (
            200,
            b'{"location": "/data/t", "storage_options": {"region": "x"}, "is_only_declared": true}',
        )

    with serving(answer) as uri:
        catalog = RestCatalog(
            f"{uri}/base/", {"key": "v"}, headers={"Authorization": "Bearer t0ken"}, delimiter="@"
        )
        entry = catalog.describe_table(("a b", "t/ü$"))
    assert seen == [
        (
            "/base/v1/table/a%20b%40t%2F%C3%BC%24/describe?delimiter=%40",
            "Bearer t0ken",
            {"id": ["a b", "t/ü$"], "check_declared": True},
        )
    ]
    assert (entry.location, entry.declared) == ("/data/t", True)
    assert entry.storage_options == {"key": "v", "region": "x"}


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (404, b'{"error": "x", "code": 1}', NotFoundError),
        (404, b'{"error": "x", "code": 4}', NotFoundError),
        (409, b'{"error": "x", "code": 5}', AlreadyExistsError),
        (409, b'{"error": "x", "code": 3}', ArgumentError),
        (400, b'{"detail": "x", "code": 13}', ArgumentError),
        (409, b'{"error": "x", "code": 14}', RetryableConflict),
        (500, b'{"error": "Not supported: rename", "code": 18}', UnsupportedError),
        (501, b"", UnsupportedError),
        (404, b"<html>", NotFoundError),
        (500, b"[" * 100_000, StoreError),
        (403, b'{"code": "no number"}', StoreError),
        (302, b"http://127.0.0.1:1/stolen", StoreError),
        (200, b"no json", StoreError),
        (200, b"[1]", StoreError),
        (200, b"[" * 100_000, StoreError),
        (200, b"{}", StoreError),
        (200, b'{"location": 7}', StoreError),
        (200, b'{"location": "x", "storage_options": {"a": 1}}', StoreError),
        (200, b'{"location": "x", "properties": []}', None),
        (200, b'{"location": "x", "properties": [1]}', StoreError),
    ],
)
def test_answer_of_a_server_gives_a_typed_error(
    status: int, body: bytes, error: type[LanceError] | None
) -> None:
    with serving(lambda *_: (status, body)) as uri:
        catalog = RestCatalog(uri, headers={"Authorization": "Bearer t0ken"})
        if error is None:
            assert catalog.describe_table(("t",)).location == "x"
            return
        with pytest.raises(error) as caught:
            catalog.describe_table(("t",))
    assert "t0ken" not in str(caught.value)


def test_error_text_of_a_server_that_repeats_a_token_is_masked() -> None:
    body = json.dumps(
        {"error": "bad token t0ken-secret of Bearer t0ken-secret", "code": 16}
    ).encode()
    with serving(lambda *_: (401, body)) as uri:
        catalog = RestCatalog(uri, headers={"Authorization": "Bearer t0ken-secret"})
        with pytest.raises(StoreError, match=r"bad token \*\*\*") as caught:
            catalog.list_tables()
    assert "secret" not in str(caught.value)


def test_pages_of_a_listing_are_joined_and_an_endless_one_ends() -> None:
    def pages(path: str, *_: Any) -> Answer:
        if "page_token" not in path:
            return 200, b'{"tables": ["b"], "page_token": "b"}'
        return 200, b'{"tables": ["a"]}'

    with serving(pages) as uri:
        assert RestCatalog(uri).list_tables(("ns",)) == ["a", "b"]
    for body, rule in (
        (b'{"tables": ["b"], "page_token": "b"}', "page_token"),
        (b'{"tables": [{"name": "b"}]}', "tables must be a list of texts"),
    ):
        with (
            serving(lambda *_, body=body: (200, body)) as uri,
            pytest.raises(StoreError, match=rule),
        ):
            RestCatalog(uri).list_tables()


def test_rest_catalog_never_prints_its_credentials() -> None:
    catalog = RestCatalog(
        "http://127.0.0.1:1/x", {"key": "hidden"}, headers={"Authorization": "hidden"}
    )
    assert repr(catalog) == "RestCatalog('http://127.0.0.1:1/x')"
    with pytest.raises(StoreError, match="did not answer") as caught:
        catalog.list_tables()
    assert "hidden" not in f"{caught.value} {caught.value.__context__} {catalog._client}"
    with pytest.raises(ArgumentError, match="Authorization") as refused:
        RestCatalog("http://user:hidden@127.0.0.1:1/x")
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    "uri", ["", "file:///etc/passwd", "ftp://host", "host:80", "http://", "s3://x"]
)
def test_rest_catalog_of_another_scheme_raises(uri: str) -> None:
    with pytest.raises(ArgumentError, match="https://host"):
        RestCatalog(uri)


def test_name_with_the_delimiter_of_the_server_raises() -> None:
    with pytest.raises(ArgumentError, match="delimiter"):
        RestCatalog("http://127.0.0.1:1").describe_table(("a$b",))
    with pytest.raises(ArgumentError, match="delimiter"):
        RestCatalog("http://127.0.0.1:1", delimiter="")
