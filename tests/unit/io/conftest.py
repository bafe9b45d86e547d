"""Stores to test: a local folder, memory, and a bucket behind an S3 server in this process."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pennon.io import open_store
from pennon.io.store import Store
from tests.unit.io.s3_server import BUCKET, S3Server, serving_s3


@pytest.fixture(scope="session")
def s3_process() -> Iterator[S3Server]:
    with serving_s3() as server:
        yield server


@pytest.fixture
def s3(s3_process: S3Server) -> Iterator[S3Server]:
    s3_process.requests.clear()
    yield s3_process
    s3_process.fault = None


@pytest.fixture
def bucket_store(s3: S3Server) -> Store:
    store = open_store(f"s3://{BUCKET}/{uuid.uuid4().hex}/t.lance", s3.options)
    s3.requests.clear()
    return store


@pytest.fixture(params=["local", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return open_store(tmp_path / "deep" / "t.lance")
    if request.param == "memory":
        return open_store(f"memory://{uuid.uuid4().hex}/t.lance")
    found: Store = request.getfixturevalue("bucket_store")
    return found
