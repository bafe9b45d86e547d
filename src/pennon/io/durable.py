"""Local writes that are all there or not there, also after a power cut.

The order is: temporary name, bytes, fsync of the file, the final name, fsync of the folder.  A file that
replaces none has its name before the fsyncs, which then run side by side: its name is of use to nobody
before `DurableWriter.close` returns.  A manifest always comes last and in the strict order.  A torn file
never stands at the final name of another; what a crash leaves is a ``.tmp_...`` file, which readers
ignore and clean-up removes.  Where a folder was made on the way, the one above it is synced on another
thread meanwhile: syncs of one disk wait for the same journal, so several at once take as long as one.
Files that get their names in one folder at the same moment share its sync.

That is the level ``full``.  `pennon.io.durability` has the others: which files wait for a commit, and which
are not synced at all.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import uuid
from collections.abc import Iterable
from concurrent.futures import Future

import pyarrow as pa

from pennon.core.telemetry import requests_a
from pennon.core.thread_pools import in_forked_child, pool
from pennon.core.units import KIB, MIB
from pennon.errors import Breadcrumb, StoreError
from pennon.io.durability import SyncRule, Unsynced, sync_later, sync_path
from pennon.io.oserrors import os_errors
from pennon.io.writer_base import Ending

_PENDING_BYTES = 1024 * KIB
_LARGE_BYTES = 64 * KIB
"""A piece of so many bytes is written by itself: to gather it would copy it, which takes longer than to let go of the lock."""
_SYNC_BYTES = 16 * MIB
"""After so many bytes, a file is synced while more is written: the last sync has little left to do."""
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
_NEW_FILE |= getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)  # Windows has these


def write_all(fd: int, data: memoryview) -> None:
    """Write all bytes, however few the system takes at a time."""
    while data:
        written = os.write(fd, data)
        if written == 0:
            message = "the system wrote no byte"
            raise OSError(message)
        data = data[written:]


class FolderSync:
    """A sync of a folder that another thread has begun, unless the pool is busy.

    All who ask for one before it starts share it: their names are in the folder by then.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._done: Future[None] = Future()

    @classmethod
    def begin(cls, folder: str) -> FolderSync:
        """Begin to make the names in ``folder`` durable, those that it has now."""
        mine = cls(folder)
        with _lock:
            shared = _waiting.setdefault(folder, mine)
        if shared is mine:
            pool().submit(mine._run)
        return shared

    def end(self) -> None:
        """Wait for the sync, or do it if no thread has started; raises the system's error."""
        self._run()
        self._done.result()

    def _run(self) -> None:
        with _gates[hash(self._folder) % _GATES]:  # meanwhile others may come, and share it
            with _lock:
                if _waiting.get(self._folder) is not self:
                    return
                del _waiting[self._folder]
            try:
                sync_path(self._folder)
            except BaseException as error:  # noqa: BLE001 - all who wait for it are told
                self._done.set_exception(error)
            else:
                self._done.set_result(None)


_GATES = 64
_gates: list[threading.Lock] = []
"""A folder is synced once at a time; folders share a gate by chance alone."""
_waiting: dict[str, FolderSync] = {}
_lock = threading.Lock()


def _begin_anew() -> None:
    """Forget in a forked child what threads of its parent were to do, and may have held."""
    global _lock  # noqa: PLW0603 - the lock itself is replaced
    _lock = threading.Lock()
    _gates[:] = [threading.Lock() for _ in range(_GATES)]
    _waiting.clear()


_begin_anew()


in_forked_child(_begin_anew)


def sync_file(fd: int, others: Iterable[FolderSync | Unsynced]) -> None:
    """Make a file's bytes durable, and what was begun to sync beside it."""
    os.fsync(fd)
    for sync in others:
        sync.end()


def ensure_folder(folder: str) -> list[str]:
    """Create ``folder`` and those above it that are missing; return the folders that have new names.

    Others may make the same folders at the same time, and need not have synced them yet.
    """
    try:
        os.mkdir(folder)
    except FileExistsError:
        return []
    except FileNotFoundError:
        above = os.path.dirname(folder)
        return [*ensure_folder(above), _make_below(above, folder)]
    return [os.path.dirname(folder)]


def _make_below(above: str, folder: str) -> str:
    """Create a folder, if it is not there by now, in one that is, which is returned."""
    try:
        os.mkdir(folder)
    except FileExistsError:
        pass
    except FileNotFoundError as error:
        if os.path.isdir(above):  # such as /proc
            message = f"no folder can be made in {above}"
            raise PermissionError(errno.EACCES, message) from error
        raise
    return above


def temporary_name(final: str) -> str:
    """Return a unique name beside ``final``.

    It is known before the file is made, so that an interrupt at any moment finds what to remove.
    """
    folder, name = os.path.split(final)
    return os.path.join(folder, f".tmp_{name[:40]}_{uuid.uuid4().hex}")


def open_temporary(temporary: str, rule: SyncRule) -> tuple[int, list[FolderSync]]:
    """Create an empty file; returns its descriptor, and what `sync_file` has to wait for."""
    try:
        return os.open(temporary, _NEW_FILE, 0o666), []
    except FileNotFoundError:
        above = ensure_folder(os.path.dirname(temporary))
    if rule.waits:
        sync_later(rule.root, above)
    syncs = [FolderSync.begin(folder) for folder in above] if rule.syncs else []
    return os.open(temporary, _NEW_FILE, 0o666), syncs


def write_temporary(temporary: str, data: bytes, rule: SyncRule) -> None:
    """Write a new file whole, and make it durable with all that has waited for it."""
    needed = rule.needed()
    fd, above = open_temporary(temporary, rule)
    try:
        write_all(fd, memoryview(data))
        if rule.syncs:
            sync_file(fd, [*above, *needed])
    finally:
        os.close(fd)


def link_new(temporary: str, final: str, rule: SyncRule) -> None:
    """Give ``temporary`` the name ``final`` unless it is taken, and take its old name away.

    Raises FileExistsError if it is taken.  A network file system may lose the answer to a link that
    succeeded and then report its own link as an obstacle; two names on our file tell.
    """
    try:
        os.link(temporary, final)
    except FileExistsError:
        if os.stat(temporary).st_nlink != 2:  # the temporary and the final name
            raise
    if rule.syncs:
        sync_path(os.path.dirname(final))


def discard(temporary: str) -> None:
    """Remove a temporary file if it is still there."""
    with contextlib.suppress(OSError):
        os.unlink(temporary)


class DurableWriter(Ending):
    """An `ObjectWriter` for local files; ``path`` is what its errors call the file ``final``.

    The file is that of the process which began it: a forked child neither finishes nor removes it.
    A writer that nobody holds any more has given up.
    """

    _fd = -1

    def __init__(self, final: str, path: str, rule: SyncRule | None = None) -> None:
        self._final = final
        self._path = path
        self._rule = SyncRule() if rule is None else rule
        self._pending = bytearray()
        self._size = 0
        self._process = os.getpid()
        self._unsynced = 0
        self._sync: Future[None] | None = None
        self._temporary = temporary_name(final)
        with os_errors("create", path):
            try:
                self._fd, self._above = open_temporary(self._temporary, self._rule)
            except BaseException:
                discard(self._temporary)
                raise

    def write(self, data: pa.Buffer | bytes | memoryview) -> None:
        """Append bytes; small pieces are gathered, large ones go straight to the file."""
        view = memoryview(data).cast("B")
        self._size += len(view)
        if len(view) < _LARGE_BYTES and len(self._pending) + len(view) < _PENDING_BYTES:
            self._pending += view
            return
        with os_errors("write", self._path):
            self._flush()
            write_all(self._fd, view)
            self._unsynced += len(view)
            if self._unsynced > _SYNC_BYTES and self._rule.is_kept:
                self._sync_meanwhile()

    def tell(self) -> int:
        """Return how many bytes were written so far."""
        return self._size

    def close(self) -> None:
        """Make the file durable, then give it its name; closing twice is fine."""
        if self._fd < 0:
            return
        if self._process != os.getpid():
            message = f"process {self._process} writes this file; a forked child cannot finish it"
            raise StoreError(message, where=Breadcrumb(self._path))
        try:
            with os_errors("finish", self._path):
                self._finish()
        except BaseException:
            self.abort()
            raise

    @requests_a("put", lambda _: "file", lambda writer, _, __: writer.tell())
    def _finish(self) -> None:
        """Make the file durable, then give it its name."""
        self._flush()
        self._end_sync()
        if os.path.lexists(self._final):
            self._replace()
        else:
            self._name_anew()

    def abort(self) -> None:
        """Remove what was written."""
        if self._process != os.getpid():
            self._sync = None  # of a thread that this process does not have
            if self._fd >= 0:
                self._close_fd()
            return
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                self._end_sync()
            self._close_fd()
        discard(self._temporary)

    def __del__(self) -> None:
        if self._fd >= 0:
            self.abort()

    def _replace(self) -> None:
        """Take the place of another file, which is there until ours is durable."""
        if self._rule.is_kept:
            sync_file(self._fd, [*self._above, *self._rule.needed()])
        self._close_fd()
        os.replace(self._temporary, self._final)
        if self._rule.is_kept:
            sync_path(os.path.dirname(self._final))

    def _name_anew(self) -> None:
        """Give the file its name, and make both durable at once: until now the name was not published."""
        folder = os.path.dirname(self._final)
        needed = self._rule.needed() if self._rule.syncs else []
        os.replace(self._temporary, self._final)
        self._temporary = self._final  # which is what to remove if that fails
        if self._rule.syncs:
            sync_file(self._fd, [*self._above, FolderSync.begin(folder), *needed])
        elif self._rule.waits:
            sync_later(self._rule.root, [self._final, folder])
        self._close_fd()

    def _flush(self) -> None:
        if self._pending:
            pending, self._pending = self._pending, bytearray()
            write_all(self._fd, memoryview(pending))

    def _sync_meanwhile(self) -> None:
        """Sync what is written so far on another thread; an error of that is one of this file."""
        if self._sync is None or self._sync.done():
            self._end_sync()
            self._unsynced = 0
            self._sync = pool().submit(os.fsync, self._fd)

    def _end_sync(self) -> None:
        """Wait for the sync that is under way; the system tells its error only once."""
        sync, self._sync = self._sync, None
        if sync is not None and not sync.cancel():
            sync.result()

    def _close_fd(self) -> None:
        fd, self._fd = self._fd, -1
        os.close(fd)
