"""Local writes that are all there or not there, also after a power cut.

The order is always: temporary name, bytes, fsync of the file, the final name, fsync of the folder.
A torn file never stands at a final name; what a crash leaves is a ``.tmp_...`` file, which readers
ignore and clean-up removes.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from types import TracebackType
from typing import Self

import pyarrow as pa

from pennon.io.oserrors import os_errors
from pennon.units import KIB

_PENDING_BYTES = 256 * KIB
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)


def write_all(fd: int, data: memoryview) -> None:
    """Write all bytes, however few the system takes at a time."""
    while data:
        written = os.write(fd, data)
        if written == 0:
            message = "the system wrote no byte"
            raise OSError(message)
        data = data[written:]


def sync_folder(folder: str) -> None:
    """Make the names in ``folder`` durable."""
    fd = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def ensure_folder(folder: str) -> None:
    """Create ``folder`` and those above it that are missing, durably."""
    try:
        os.mkdir(folder)
    except FileExistsError:
        return
    except FileNotFoundError:
        ensure_folder(os.path.dirname(folder))
        ensure_folder(folder)
        return
    sync_folder(os.path.dirname(folder))


def open_temporary(final: str) -> tuple[int, str]:
    """Create an empty file beside ``final``; returns its descriptor and its name."""
    folder, name = os.path.split(final)
    temporary = os.path.join(folder, f".tmp_{name[:40]}_{uuid.uuid4().hex}")
    try:
        return os.open(temporary, _NEW_FILE, 0o666), temporary
    except FileNotFoundError:
        ensure_folder(folder)
        return os.open(temporary, _NEW_FILE, 0o666), temporary


def link_new(temporary: str, final: str) -> None:
    """Give ``temporary`` the name ``final`` unless it is taken, and take its old name away.

    Raises FileExistsError if it is taken.  A network file system may lose the answer to a link that
    succeeded and then report its own link as an obstacle; two names on our file tell.
    """
    try:
        os.link(temporary, final)
    except FileExistsError:
        if os.stat(temporary).st_nlink != 2:  # the temporary and the final name
            raise
    sync_folder(os.path.dirname(final))


def discard(temporary: str) -> None:
    """Remove a temporary file if it is still there."""
    with contextlib.suppress(OSError):
        os.unlink(temporary)


class DurableWriter:
    """An `ObjectWriter` for local files; ``path`` is what its errors call the file ``final``."""

    def __init__(self, final: str, path: str) -> None:
        self._final = final
        self._path = path
        self._pending = bytearray()
        self._size = 0
        with os_errors("create", path):
            self._fd, self._temporary = open_temporary(final)

    def write(self, data: pa.Buffer | bytes | memoryview) -> None:
        """Append bytes; small pieces are gathered, large ones go straight to the file."""
        view = memoryview(data).cast("B")
        self._size += len(view)
        if len(self._pending) + len(view) < _PENDING_BYTES:
            self._pending += view
            return
        with os_errors("write", self._path):
            self._flush()
            write_all(self._fd, view)

    def tell(self) -> int:
        """Return how many bytes were written so far."""
        return self._size

    def close(self) -> None:
        """Make the file durable, then give it its name; closing twice is fine."""
        if self._fd < 0:
            return
        try:
            with os_errors("finish", self._path):
                self._flush()
                os.fsync(self._fd)
                self._close_fd()
                os.replace(self._temporary, self._final)
                sync_folder(os.path.dirname(self._final))
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Remove what was written."""
        if self._fd >= 0:
            self._close_fd()
        discard(self._temporary)

    def _flush(self) -> None:
        if self._pending:
            write_all(self._fd, memoryview(bytes(self._pending)))
            self._pending.clear()

    def _close_fd(self) -> None:
        fd, self._fd = self._fd, -1
        os.close(fd)

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the writer, or abort it when an exception is on its way."""
        if kind is None:
            self.close()
        else:
            self.abort()
