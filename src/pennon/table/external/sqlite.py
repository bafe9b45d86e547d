"""Manifests in a SQLite file, for writers that share a disk: ``s3+sqlite://bucket/t?sqliteFile=F``.

One row a version.  Each verb opens the file, runs one statement, which SQLite makes one durable
transaction, and closes it: nothing is held that a fork, a thread or a pickle could break.

The file must lie on a disk whose locks work, so on no network file system, and all writers of a table must
use the same one.  Many tables may share it: a row holds the URI of its table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from pennon.core.fast_dataclass import dataclass
from pennon.errors import AlreadyExistsError, Breadcrumb, FormatError, NotFoundError, StoreError
from pennon.table.external.manifests import Entry

_WAIT_SECONDS = 60.0
_SETUP = """
    CREATE TABLE IF NOT EXISTS manifests (
        base_uri TEXT NOT NULL, version INTEGER NOT NULL, path TEXT NOT NULL, size INTEGER,
        PRIMARY KEY (base_uri, version)
    ) WITHOUT ROWID
"""
_GET = "SELECT version, path, size FROM manifests WHERE base_uri = ? AND version = ?"
_GET_LATEST = """
    SELECT version, path, size FROM manifests WHERE base_uri = ? ORDER BY version DESC LIMIT 1
"""
_ADD = "INSERT INTO manifests (path, size, base_uri, version) VALUES (?, ?, ?, ?)"
_REPLACE = "UPDATE manifests SET path = ?, size = ? WHERE base_uri = ? AND version = ?"


@dataclass(frozen=True, slots=True)
class SqliteManifests:
    """A `ManifestStore` in the SQLite file ``file``, for the table at ``base_uri``."""

    file: str
    base_uri: str

    def get(self, version: int) -> Entry | None:
        """Return what is known of a version."""
        return self._read(_GET, self.base_uri, version)

    def get_latest(self) -> Entry | None:
        """Return the entry of the highest version."""
        return self._read(_GET_LATEST, self.base_uri)

    def put_if_not_exists(self, entry: Entry) -> None:
        """Add an entry."""
        with self._database() as database:
            try:
                database.execute(_ADD, self._row(entry))
            except sqlite3.IntegrityError:
                message = "the version is taken"
                raise AlreadyExistsError(message, where=Breadcrumb(file=entry.path)) from None

    def put_if_exists(self, entry: Entry) -> None:
        """Replace the entry of a version."""
        with self._database() as database:
            if database.execute(_REPLACE, self._row(entry)).rowcount == 0:
                message = f"the manifest store knows no version {entry.version}"
                raise NotFoundError(message, where=Breadcrumb(file=entry.path))

    def below(self, folder: str) -> SqliteManifests:
        """Return the manifests of the table in a folder below this one."""
        return replace(self, base_uri=f"{self.base_uri}/{folder}")

    def _row(self, entry: Entry) -> tuple[str, int | None, str, int]:
        return entry.path, entry.size_bytes, self.base_uri, entry.version

    def _read(self, query: str, *keys: str | int) -> Entry | None:
        with self._database() as database:
            row = database.execute(query, keys).fetchone()
        return None if row is None else _parse(row)

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """Open the file, in which each statement is a transaction of its own."""
        try:
            database = sqlite3.connect(self.file, timeout=_WAIT_SECONDS, isolation_level=None)
            with closing(database):
                database.execute("PRAGMA synchronous = EXTRA")
                database.execute(_SETUP)
                yield database
        except sqlite3.Error as error:
            message = f"the manifest store failed: {error}"
            raise StoreError(message, where=Breadcrumb(file=self.file)) from error


def _parse(row: tuple[object, ...]) -> Entry:
    version, path, size = row
    if not (isinstance(version, int) and isinstance(path, str) and isinstance(size, int | None)):
        message = f"the manifest store holds no entry but {row!r:.200}"
        raise FormatError(message)
    return Entry(version, path, size)
