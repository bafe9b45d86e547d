"""Local folders, memory and buckets pass the shipped contract of stores."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from pennon.io import open_store
from pennon.io.store import Store
from pennon.testing import StoreContract
from tests.unit.io.s3_server import BUCKET, S3Server


class TestLocalStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def new_store(self) -> Store:
        return open_store(self.folder / uuid.uuid4().hex / "t.lance")


class TestMemoryStore(StoreContract):
    def new_store(self) -> Store:
        return open_store(f"memory://{uuid.uuid4().hex}/t.lance")


class TestS3Store(StoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, s3: S3Server) -> None:
        self.server = s3

    def new_store(self) -> Store:
        return open_store(f"s3://{BUCKET}/{uuid.uuid4().hex}/t.lance", self.server.options)
