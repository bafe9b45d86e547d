"""Data files of one folder, which share its store: `LanceFileSession`, as in ``lance.file``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pennon.compat.arguments import refuse
from pennon.core.byte_ranges import ByteRange
from pennon.core.units import MIB
from pennon.errors import ArgumentError, NotFoundError
from pennon.file.facade import LanceFileReader, LanceFileWriter
from pennon.io import open_store
from pennon.io.paths import check_path

if TYPE_CHECKING:
    from pennon.io.store import Store

_PIECE_BYTES = 16 * MIB


@dataclass
class ListResult:
    """The folders and the files directly below a folder, as paths from the session's folder.

    >>> from pennon.file import LanceFileSession
    >>> session = LanceFileSession(uri)
    >>> with session.open_writer("part/a.lance") as writer:
    ...     writer.write_batch(pa.table({"id": [1, 2, 3]}))
    >>> session.list_with_delimiter()
    ListResult(common_prefixes=['part'], objects=[])
    """

    common_prefixes: list[str]
    objects: list[str]


class LanceFileSession:
    """A folder, local or in an object store, whose files are read and written over one connection.

    ``base_path``: a path or URI; all paths below are relative to it, and may not leave it (FormatError, which
    is a ValueError and an OSError).

    >>> from pennon.file import LanceFileSession
    >>> session = LanceFileSession(uri)
    >>> with session.open_writer("part/a.lance") as writer:
    ...     writer.write_batch(pa.table({"id": [1, 2, 3]}))
    >>> session.list()
    ['part/a.lance']
    >>> session.open_reader("part/a.lance").num_rows()
    3
    """

    def __init__(
        self,
        base_path: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        **unsupported: Any,
    ) -> None:
        refuse(unsupported, LanceFileSession.__init__)
        self._store = open_store(os.fspath(base_path), storage_options)

    @classmethod
    def of_store(cls, store: Store) -> LanceFileSession:
        """Return a session of a folder that is open already."""
        session = cls.__new__(cls)
        session._store = store  # noqa: SLF001 - of its own class
        return session

    def open_reader(self, path: str, columns: Sequence[str] | None = None) -> LanceFileReader:
        """Open a file; ``columns`` limits what is read.  Raises NotFoundError if there is none."""
        return LanceFileReader.in_store(self._store, check_path(path), columns)

    def open_writer(
        self,
        path: str,
        *,
        schema: pa.Schema | None = None,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        keep_original_array: bool | None = None,
        max_page_bytes: int | None = None,
    ) -> LanceFileWriter:
        """Start a new file; options are those of `LanceFileWriter`, and ``keep_original_array`` changes nothing."""
        del keep_original_array
        return LanceFileWriter.in_store(
            self._store,
            check_path(path),
            schema,
            data_cache_bytes=data_cache_bytes,
            version=version,
            max_page_bytes=max_page_bytes,
        )

    def contains(self, path: str) -> bool:
        """Say whether there is a file of this name; a folder is none."""
        try:
            self._store.open(check_path(path))
        except NotFoundError:
            return False
        return True

    def list(self, path: str | None = None) -> list[str]:
        """Return the files in a folder and in those below it, sorted; none is no error."""
        return [found for found, _ in self._store.list_names(_folder(path))]

    def list_with_delimiter(self, path: str | None = None) -> ListResult:
        """Return the folders and the files directly below a folder."""
        folder = _folder(path)
        depth = folder.count("/") + 1 if folder else 0
        files = [name for name, _ in self._store.list_names(folder) if name.count("/") == depth]
        return ListResult(list(self._store.list_folders(folder)), files)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return ``length`` bytes of a file from ``offset`` on.

        Raises NotFoundError if there is no such file, FormatError if it has fewer bytes.
        """
        if offset < 0 or length < 0:
            message = f"offset and length are 0 or more, got {offset} and {length}"
            raise ArgumentError(message)
        reader = self._store.open(check_path(path))
        (found,) = reader.read([ByteRange(offset, length)])
        data: bytes = found.to_pybytes()
        return data

    def upload_file(self, local_path: str | Path, remote_path: str) -> None:
        """Copy a local file to a path of the session; it is there when it is complete."""
        with (
            Path(local_path).open("rb") as source,
            self._store.open_writer(check_path(remote_path)) as writer,
        ):
            while piece := source.read(_PIECE_BYTES):
                writer.write(piece)

    def download_file(self, remote_path: str, local_path: str | Path) -> None:
        """Copy a file of the session to a local path.  Raises NotFoundError if there is none."""
        pieces = self._pieces(check_path(remote_path))
        first = next(pieces, b"")
        with Path(local_path).open("wb") as target:
            target.write(first)
            target.writelines(pieces)

    def _pieces(self, path: str) -> Iterator[bytes]:
        reader = self._store.open(path)
        for start in range(0, reader.size_bytes, _PIECE_BYTES):
            length = min(_PIECE_BYTES, reader.size_bytes - start)
            (found,) = reader.read([ByteRange(start, length)])
            yield found.to_pybytes()

    def delete_file(self, path: str) -> None:
        """Delete a file.  Raises NotFoundError if there is none."""
        self._store.open(check_path(path))
        self._store.delete(path)


def _folder(path: str | None) -> str:
    name = (path or "").strip("/")
    return check_path(name) if name else ""
