"""Every manifest store passes the one suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pennon.table.external import Entry, ManifestStore
from pennon.table.external.dynamodb import DynamoManifests
from pennon.table.external.sqlite import SqliteManifests
from pennon.testing import ManifestStoreContract, MemoryManifests
from tests.unit.io import dynamodb_tables
from tests.unit.io.s3_server import BUCKET, serving_s3

_IN_MEMORY: dict[str, dict[int, Entry]] = {}


class SharedMemory(MemoryManifests):
    """Pickles by name, as a test of the suite needs it."""

    def __init__(self, name: str) -> None:
        super().__init__(_IN_MEMORY.setdefault(name, {}))
        object.__setattr__(self, "name", name)

    def __reduce__(self) -> tuple[type[SharedMemory], tuple[str]]:
        return SharedMemory, (self.name,)  # type: ignore[attr-defined]

    def below(self, folder: str) -> SharedMemory:
        return SharedMemory(f"{self.name}/{folder}")  # type: ignore[attr-defined]


class TestMemoryManifests(ManifestStoreContract):
    def manifests(self, table: str) -> ManifestStore:
        return SharedMemory(table)


class TestSqliteManifests(ManifestStoreContract):
    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "manifests.db"

    def manifests(self, table: str) -> ManifestStore:
        return SqliteManifests(str(self.file), table)


class TestDynamoManifests(ManifestStoreContract):
    options: tuple[tuple[str, str], ...]
    endpoint: str

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _server(cls) -> Iterator[None]:
        with serving_s3() as s3:
            dynamodb_tables.create_table(s3)
            cls.endpoint = s3.options["aws_endpoint"]
            cls.options = tuple(sorted(s3.options.items()))
            yield

    def manifests(self, table: str) -> ManifestStore:
        return DynamoManifests(dynamodb_tables.TABLE, BUCKET, table, self.endpoint, self.options)
