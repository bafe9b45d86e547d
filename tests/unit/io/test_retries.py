"""Servers that throttle, fail for a moment, or hang up: retries within a deadline, then errors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pennon.core.byte_ranges import ByteRange, Gather
from pennon.errors import AlreadyExistsError, LanceError, NotFoundError, StoreError
from pennon.io.limits import FetchLimits
from pennon.io.remote import RemoteStore
from pennon.io.store import Store
from tests.unit.io.web_server import HALF, RESET, WebServer, serving

BODY = np.random.default_rng(7).integers(0, 256, 300_000, np.uint8).tobytes()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    (tmp_path / "x").write_bytes(BODY)
    with serving(tmp_path) as server:
        yield server


@pytest.mark.parametrize("fault", [429, 500, 502, 503, 504, 408, RESET, HALF])
@pytest.mark.parametrize("names_states", [False, True])
def test_a_moment_of_trouble_is_waited_out(
    web: WebServer, fault: int | str, names_states: bool
) -> None:
    web.names_states = names_states
    web.faults = [fault]
    (answer,) = web.open().open("x", len(BODY)).read([ByteRange(7, 200_000)])
    assert answer.to_pybytes() == BODY[7:200_007]
    assert len(web.requests) == 2
    web.faults = [fault]
    assert web.open().read_whole("x").to_pybytes() == BODY
    assert len(web.requests) == 4


def test_throttled_requests_of_one_round_are_retried(web: WebServer) -> None:
    """Requests of one round are retried each by itself; none is lost, none answers for another."""
    web.faults = [503, 429, RESET, HALF, 429, 503, 503]
    starts = np.arange(0, 300_000, 3000, dtype=np.int64)[::-1]
    store = RemoteStore("", web.open().location, (), FetchLimits(16, 5000, 8))
    (answer,) = store.open("x", len(BODY)).read([Gather(starts, starts + 100)])
    assert answer.to_pybytes() == b"".join(BODY[start : start + 100] for start in starts)
    assert not web.faults


@pytest.mark.parametrize("fault", [429, 503, RESET, HALF])
def test_lasting_server_errors_are_raised_at_the_deadline(web: WebServer, fault: int | str) -> None:
    web.faults = [fault] * 1000
    reader = web.open(client_retry_timeout="1", client_max_retries="1000").open("x", len(BODY))
    begun = time.monotonic()
    with pytest.raises(StoreError) as caught:
        reader.read([ByteRange(0, 100_000)])
    assert time.monotonic() - begun < 20
    assert caught.value.where.file == "x"
    assert len(web.requests) < 100, "it waits longer every time"


def test_requests_stop_at_the_retry_limit(web: WebServer) -> None:
    web.faults = [503] * 1000
    with pytest.raises(StoreError):
        web.open(client_max_retries="2").open("x")
    assert len(web.requests) == 3


@pytest.mark.parametrize("status", [400, 403, 404, 409, 412, 416])
def test_http_client_errors_are_not_retried(web: WebServer, status: int) -> None:
    web.faults = [status] * 1000
    with pytest.raises(NotFoundError if status == 404 else StoreError):
        web.open().open("x", len(BODY)).read([ByteRange(0, 10)])
    assert len(web.requests) == 1


def test_server_without_range_requests_is_refused(web: WebServer) -> None:
    web.knows_ranges = False
    with pytest.raises(LanceError, match="ange"):
        web.open().open("x", len(BODY)).read([ByteRange(5, 10)])
    assert web.open().read_whole("x").to_pybytes() == BODY


@pytest.mark.parametrize("verb", ["put", "put_if_absent", "open_writer", "delete", "list"])
@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Slow Down"])
def test_writing_waits_throttling_out(s3: Any, bucket_store: Store, verb: str, status: str) -> None:
    bucket_store.put("data/old", b"0")
    bucket_store.put_if_absent("_versions/1.manifest", b"0")
    left = [status] * 2
    s3.fault = lambda *_: left.pop() if left else None
    if verb == "open_writer":
        with bucket_store.open_writer("data/x") as writer:
            writer.write(BODY)
    elif verb == "list":
        assert [found.path for found in bucket_store.list("data")] == ["data/old"]
    elif verb == "delete":
        bucket_store.delete("data/old")
    else:
        getattr(bucket_store, verb)("data/x", BODY)
    assert not left
    paths = {"list": ["data/old"], "delete": []}.get(verb, ["data/old", "data/x"])
    assert [found.path for found in bucket_store.list("data")] == paths
    if len(paths) == 2:
        assert bucket_store.read_whole("data/x").to_pybytes() == BODY


@pytest.mark.parametrize("size", [300_000, 20_000_000])
def test_upload_with_lost_answers_is_complete(s3: Any, bucket_store: Store, size: int) -> None:
    """Every third request does its work, and its answer is a 500."""
    count = [0]

    def lose(_: object, work: Any) -> str | None:
        count[0] += 1
        if count[0] % 3:
            return None
        work()
        return "500 Internal Server Error"

    body = BODY * (size // len(BODY))
    s3.fault = lose
    with bucket_store.open_writer("data/x") as writer:
        writer.write(body)
    s3.fault = None
    assert bucket_store.read_whole("data/x").to_pybytes() == body


def test_put_if_absent_with_lost_answer_raises_already_exists(s3: Any, bucket_store: Store) -> None:
    """Whoever commits looks whose manifest it is; see `pennon.table.commit.put_manifest`."""
    bucket_store.put_if_absent("_versions/1.manifest", b"0")
    lost = [1]

    def apply_then_throttle(environ: dict[str, Any], work: Any) -> str | None:
        if environ["REQUEST_METHOD"] != "PUT" or not lost:
            return None
        lost.pop()
        work()
        return "503 Slow Down"

    s3.fault = apply_then_throttle
    with pytest.raises(AlreadyExistsError):
        bucket_store.put_if_absent("_versions/2.manifest", b"mine")
    assert bucket_store.read_whole("_versions/2.manifest").to_pybytes() == b"mine"
