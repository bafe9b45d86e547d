"""Requests that the server of the page answers, and those that it refuses."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest

import pennon
from tests.unit.view.conftest import Client


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/main.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
    ],
)
def test_files_of_the_page_need_no_token_and_hold_a_strict_policy(
    gallery: Client, path: str, kind: str
) -> None:
    status, headers, body = gallery.ask(path, headers={"X-Pennon-Token": None})
    assert (status, headers["Content-Type"], int(headers["Content-Length"])) == (
        200,
        kind,
        len(body),
    )
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in headers


def test_index_holds_no_inline_script_nor_style(gallery: Client) -> None:
    _, _, body = gallery.ask("/")
    text = body.decode()
    assert "<style" not in text
    assert "style=" not in text
    assert (
        text.count("<script") == text.count('<script type="module" src="/main.js"></script>') == 1
    )


@pytest.mark.parametrize(
    "path", ["/api/table", "/api/rows", "/api/media?column=picture&row=0", "/nowhere"]
)
@pytest.mark.parametrize("token", [None, "", "wrong", "Ä"])
def test_data_without_the_token_are_refused(gallery: Client, path: str, token: str | None) -> None:
    given = None if token is None else token.encode().decode("latin-1")
    status, headers, body = gallery.ask(path, headers={"X-Pennon-Token": given})
    assert status == 401
    assert b"places" not in body
    assert headers["Connection"] == "close"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "", None]
)
def test_other_hosts_are_refused_also_for_files(gallery: Client, host: str | None) -> None:
    assert gallery.ask("/api/table", headers={"Host": host})[0] == 403
    assert gallery.ask("/", headers={"Host": host})[0] == 403


def test_localhost_is_a_host_of_the_page(gallery: Client) -> None:
    host = gallery.host.replace("127.0.0.1", "localhost")
    assert gallery.ask("/api/table", headers={"Host": host})[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://{host}", "http://127.0.0.1:1"]
)
def test_other_origins_are_refused_and_no_answer_allows_one(gallery: Client, origin: str) -> None:
    status, headers, _ = gallery.ask(
        "/api/table", headers={"Origin": origin.format(host=gallery.host)}
    )
    assert status == 403
    assert not any(name.lower().startswith("access-control") for name in headers)


def test_own_origin_is_let_through_and_cross_site_fetches_are_refused(gallery: Client) -> None:
    own = {"Origin": f"http://{gallery.host}", "Sec-Fetch-Site": "same-origin"}
    assert gallery.ask("/api/table", headers={**own})[0] == 200
    for site in ("cross-site", "same-site"):
        assert gallery.ask("/api/table", headers={"Sec-Fetch-Site": site})[0] == 403


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "PROPFIND"]
)
def test_methods_other_than_get_are_refused(gallery: Client, method: str) -> None:
    status, headers, _ = gallery.ask("/api/table", method)
    assert (status, headers["Allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/static/main.js", "/main.js/../../server.py", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
     "/..%5cserver.py", "/api/../main.py", "/\x7f", "http://evil.example/main.js/x", "/main.js%00", "/api/table/"],
)  # fmt: skip
def test_paths_outside_the_list_of_addresses_are_not_found(gallery: Client, path: str) -> None:
    with socket.create_connection(
        ("127.0.0.1", gallery.server.guard.port), timeout=60
    ) as connection:
        lines = f"GET {path} HTTP/1.1\r\nHost: {gallery.host}\r\nX-Pennon-Token: {gallery.server.guard.token}\r\nConnection: close\r\n\r\n"
        connection.sendall(lines.encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 404")
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"error": "there is no such address"}


@pytest.mark.parametrize(
    "line",
    [
        "\x16\x03\x01\x02",
        "GET / HTTP/9.9\r\n\r\n",
        "GET\r\n\r\n",
        "GET /" + "a" * 70_000 + "\r\n\r\n",
    ],
)
def test_malformed_requests_get_a_short_error_and_the_server_stays(
    gallery: Client, line: str
) -> None:
    with socket.create_connection(
        ("127.0.0.1", gallery.server.guard.port), timeout=60
    ) as connection:
        connection.sendall(line.encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b"aaaa" not in answer
    assert gallery.ask("/")[0] == 200


@pytest.mark.parametrize(
    ("path", "values", "status", "words"),
    [
        ("/api/table", {"version": 99}, 404, "version 99"),
        ("/api/table", {"version": "x"}, 400, "whole number"),
        ("/api/table", {"version": "-1"}, 400, "whole number"),
        ("/api/rows", {"filter": "ratin > 4"}, 400, "did you mean 'rating'"),
        ("/api/rows", {"filter": "rating >"}, 400, "a value is missing"),
        ("/api/rows", {"filter": "x" * 9000}, 400, "8,192 is the most"),
        ("/api/rows", {"words": "salt", "column": "rating"}, 400, "rating"),
        ("/api/rows", {"near": 1, "column": "place"}, 400, "no vector"),
        ("/api/rows", {"near": 2**40, "column": "embedding"}, 400, "names fragment"),
        ("/api/cell", {"column": "nix", "row": 0}, 404, "no column"),
        ("/api/cell", {"column": "place"}, 404, "row is missing"),
        ("/api/cell", {"column": "place", "row": 4}, 404, "deleted"),
        ("/api/media", {"column": "place", "row": 1}, 400, "no image or sound"),
        ("/api/pages", {"fragment": 999, "column": "place"}, 404, "no fragment 999"),
        ("/api/difference", {"before": 1, "after": 77}, 404, "version 77"),
    ],
)  # fmt: skip
def test_requests_with_wrong_parameters_get_an_error_that_names_them(
    gallery: Client, path: str, values: dict[str, object], status: int, words: str
) -> None:
    found = gallery.error(path, **values)
    assert found[0] == status
    assert words in found[1]


def test_two_servers_have_two_tokens_and_none_is_in_a_repr(gallery: Client) -> None:
    token = gallery.server.guard.token
    assert len(token) > 40
    assert token not in repr(gallery.server.guard)
    assert gallery.server.link == f"http://{gallery.host}/#token={token}"


def test_server_listens_on_loopback_only(gallery: Client) -> None:
    assert gallery.server.socket.getsockname()[0] == "127.0.0.1"


def test_view_command_prints_a_link_serves_and_ends_at_an_interrupt(tmp_path: Path) -> None:
    pennon.write_dataset(pa.table({"id": [1]}), tmp_path / "t")
    words = [sys.executable, "-m", "pennon.cli.main", "view", str(tmp_path / "t")]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        link = urlsplit(process.stdout.readline().strip())
        token = link.fragment.removeprefix("token=")
        request = Request(f"http://{link.netloc}/api/table", headers={"X-Pennon-Token": token})
        with urlopen(request, timeout=60) as answer:
            assert json.load(answer)["name"] == "t"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_view_of_a_port_in_use_is_an_error_of_one_line(gallery: Client) -> None:
    words = [sys.executable, "-m", "pennon.cli.main", "view", gallery.server.viewed.uri]
    words += ["--port", str(gallery.server.guard.port)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "in use" in done.stderr
    assert "Traceback" not in done.stderr
