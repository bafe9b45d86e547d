"""A server of the page, and requests to it as a browser sends them."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from pennon.dataset import LanceDataset
from pennon.view.opened import ViewedTable
from pennon.view.server import PageServer
from tests.unit.view import tables


@dataclass
class Client:
    """What a browser asks of a server of the page."""

    server: PageServer

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    def ask(
        self, path: str, method: str = "GET", headers: dict[str, str | None] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body; ``headers`` change those of a request that is let through."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.server.server_address[1], timeout=60
        )
        given = {"Host": self.host, "X-Pennon-Token": self.server.guard.token, **(headers or {})}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), body

    def load(self, path: str, **values: object) -> Any:
        """Return the answer of an address that must be answered."""
        status, _, body = self.ask(path + (f"?{urlencode(values)}" if values else ""))
        assert status == 200, body
        return json.loads(body)

    def error(self, path: str, **values: object) -> tuple[int, str]:
        """Return the status and the message of an address that must fail."""
        status, _, body = self.ask(f"{path}?{urlencode(values)}")
        assert status >= 400, body
        return status, json.loads(body)["error"]


@contextmanager
def serving(dataset: LanceDataset) -> Iterator[Client]:
    """Serve the page of a table while the block runs."""
    with PageServer(ViewedTable(dataset)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield Client(server)
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The page of a table of pictures with a history."""
    folder = tmp_path_factory.mktemp("gallery")
    with serving(tables.gallery(str(folder / "places.lance"), 80)) as client:
        yield client


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Client]:
    """The page of a table of hostile texts."""
    with serving(tables.hostile(str(tmp_path / "hostile.lance"))) as client:
        yield client
