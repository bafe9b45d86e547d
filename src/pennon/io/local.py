"""The local file system.

Reads are memory maps.  Writes and commits are durable: see `pennon.io.durable` for the order of
steps, and `pennon.io.durability` for who can do without.  The commit primitive is ``link``, which the system grants to exactly one of all that ask for
a name, and which never replaces a file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from typing import TypeAlias

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.kernels.mapping import Mapping, map_files
from pennon.core.telemetry import requests_a
from pennon.errors import Breadcrumb, FormatError, LanceError, NotFoundError, UnsupportedError
from pennon.io.durability import Durability, SyncRule, sync_now, sync_path
from pennon.io.durable import (
    DurableWriter,
    discard,
    link_new,
    temporary_name,
    write_temporary,
)
from pennon.io.mapped import MappedReader
from pennon.io.oserrors import os_errors
from pennon.io.paths import check_prefix, real_path, resolve_below, safe_join
from pennon.io.pread import READ_FLAGS, FileBehind
from pennon.io.store import ObjectInfo

_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV}


@dataclass(frozen=True, slots=True)
class LocalStore:
    """A `Store` below the absolute folder ``root``: a symbolic link, too, and it need not exist yet.

    Links below it are followed to read, as those of data managers are, whose files lie in a cache:
    anywhere, or only to what lies below the ``folders``, where such are given (`pennon.io.fenced`).  To
    write and to delete, none is followed out of the root.  ``durability``: when files are synced.
    """

    root: str
    uri: str
    folders: tuple[str, ...] | None = None
    durability: Durability = Durability.FULL
    _real_root: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_real_root", real_path(self.root))

    @property
    def real_root(self) -> str:
        """Return the root with all links followed, as it was when the store was made."""
        return self._real_root

    @property
    def limits(self) -> None:
        """Return None: nothing here is a request."""

    def open(self, path: str, size_bytes: int | None = None) -> MappedReader:  # noqa: ARG002
        """Map a file; the system knows its size better than ``size_bytes``."""
        real = safe_join(self._real_root, path)
        with os_errors("open", path):
            fd, status = _open_file(real, path, self.folders)
            try:
                mapping = Mapping(fd, status.st_size) if status.st_size else None
            finally:
                os.close(fd)
        if mapping is None:
            return MappedReader(self, path, pa.py_buffer(b""), identity=_identity(path, status))
        return self._mapped(path, real, mapping, status.st_dev, status.st_ino, _told(status))

    def open_all(self, paths: Sequence[str]) -> list[MappedReader | None]:
        """Map many files at once; None for a file that `open` refuses."""
        if self.folders is not None:
            return [self._open_or_none(path) for path in paths]
        reals = [self._real(path) for path in paths]
        found = map_files([os.fsencode(real) for real in reals])
        return [
            known and self._mapped(path, real, *known)
            for path, real, known in zip(paths, reals, found, strict=True)
        ]

    def _real(self, path: str) -> str:
        """Return where a file lies; nowhere if its name leaves the root."""
        try:
            return safe_join(self._real_root, path)
        except FormatError:
            return ""

    def _open_or_none(self, path: str) -> MappedReader | None:
        try:
            return self.open(path)
        except LanceError:
            return None

    def _mapped(
        self, path: str, real: str, mapping: Mapping, device: int, inode: int, told: _Told
    ) -> MappedReader:
        behind = FileBehind(real, device, inode)
        identity = path, device, inode, told
        return MappedReader(self, path, pa.py_buffer(mapping), mapping, behind, identity)

    @requests_a("get", lambda _: "file", lambda _, found, __: found.size)
    def read_whole(self, path: str) -> pa.Buffer:
        """Return the bytes of an object.  What is read whole, and once, is not worth a map."""
        real = safe_join(self._real_root, path)
        with os_errors("open", path):
            fd, status = _open_file(real, path, self.folders)
            try:
                return pa.py_buffer(_read_all(fd, status.st_size))
            finally:
                os.close(fd)

    @requests_a("head", lambda _: "file")
    def info(self, path: str) -> ObjectInfo:
        """Return size and time of a file."""
        with os_errors("open", path):
            status = os.stat(safe_join(self._real_root, path))
        return ObjectInfo(path, status.st_size, _modified(status))

    def identity(self, path: str, size_bytes: int | None = None) -> Hashable:  # noqa: ARG002
        """Return the path and what the system says of the file: which it is, and when it changed."""
        with os_errors("open", path):
            return _identity(path, os.stat(safe_join(self._real_root, path)))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the files under a folder, sorted by path; links to folders are not followed."""
        yield from sorted(self._walked(prefix), key=lambda info: info.path)

    @requests_a("list", lambda _: "file")
    def _walked(self, prefix: str) -> Sequence[ObjectInfo]:
        folder = check_prefix(prefix)
        with os_errors("list", prefix):
            return list(_walk(self._listed(folder), folder))

    @requests_a("list", lambda _: "file")
    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Yield the paths of the files under a folder, sorted; no file is asked for its size."""
        folder = check_prefix(prefix)
        with os_errors("list", prefix):
            found = _sorted_paths(self._listed(folder), folder)
        return ((path, None) for path in found)

    @requests_a("list", lambda _: "file")
    def list_folders(self, prefix: str) -> Iterator[str]:
        """Yield the folders directly below a folder, sorted: empty ones, too, and links to folders."""
        folder = check_prefix(prefix)
        above = f"{folder}/" if folder else ""
        with os_errors("list", prefix):
            found = sorted(_folder_names(self._listed(folder)))
        return (above + name for name in found)

    def open_writer(self, path: str) -> DurableWriter:
        """Start a new file, which gets its name when it is closed."""
        rule = self.durability.rule(self._real_root, path)
        return DurableWriter(self._target(path), path, rule)

    def put(self, path: str, data: bytes) -> None:
        """Write a small file whole, replacing what was there."""
        with self.open_writer(path) as writer:
            writer.write(data)

    @requests_a("put", lambda _: "file", lambda _, __, given: len(given[1]))
    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write a file whole and durably, unless the name is taken.

        Raises FormatError if what has the name is no file, and will never be one.
        """
        final = self._target(path)
        rule = SyncRule(self.durability, self._real_root)
        with os_errors("create", path):
            temporary = temporary_name(final)
            try:
                write_temporary(temporary, data, rule)
                link_new(temporary, final, rule)
            except FileExistsError:
                _check_is_file(final, path)
                raise
            except OSError as error:
                if error.errno in _NO_LINKS:
                    raise _no_links(path) from error
                raise
            finally:
                discard(temporary)

    @requests_a("delete", lambda _: "file")
    def delete(self, path: str) -> None:
        """Delete a file; none is no error."""
        target = self._target(path)
        with os_errors("delete", path), suppress(FileNotFoundError, NotADirectoryError):
            _unlink(self._real_root, target)

    def delete_empty_folders(self) -> None:
        """Delete the folders of the store that hold nothing, and its root if it is one of them."""
        for folder, _, _ in os.walk(self._real_root, topdown=False):
            with suppress(OSError):  # there is something in it
                os.rmdir(folder)

    def rename_folder(self, folder: str, new_folder: str) -> None:
        """Give a folder of the store another name, at once and durably.

        Raises NotFoundError if it is not there, AlreadyExistsError if something has the new name.
        """
        source, target = self._target(folder), self._target(new_folder)
        with os_errors("rename", folder):
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new_folder)
            sync_now()
            try:
                os.rename(source, target)
            except OSError as error:
                if error.errno in {errno.ENOTEMPTY, errno.ENOTDIR}:
                    raise FileExistsError(error.errno, error.strerror, new_folder) from error
                raise
            if self.durability is not Durability.NONE:
                for changed in {os.path.dirname(source), os.path.dirname(target)}:
                    sync_path(changed)

    def _listed(self, folder: str) -> str:
        """Return where a folder that is listed lies."""
        real = f"{self._real_root.rstrip('/')}/{folder}" if folder else self._real_root
        if self.folders is None:
            return real
        from pennon.io.fenced import resolve_in  # noqa: PLC0415 - saves what strict readers need

        return resolve_in(self.folders, real)

    def _target(self, path: str) -> str:
        """Return where to write ``path``: its folder resolved, its own name as it stands."""
        folder, _, name = safe_join("", path).rpartition("/")
        real = resolve_below(self._real_root, folder) if folder else self._real_root
        return os.path.join(real, name)


_Told: TypeAlias = tuple[int, int, int]
"""The size of a file, and when its bytes and its entry changed last."""


def _told(status: os.stat_result) -> _Told:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _identity(path: str, status: os.stat_result) -> Hashable:
    return path, status.st_dev, status.st_ino, _told(status)


def _open_file(real: str, path: str, folders: tuple[str, ...] | None) -> tuple[int, os.stat_result]:
    """Open a file, and ask what it is.  Raises NotFoundError if it is no file."""
    if folders is None:
        fd = os.open(real, READ_FLAGS)
    else:
        from pennon.io.fenced import open_in  # noqa: PLC0415 - saves what strict readers need

        fd = open_in(folders, real, READ_FLAGS)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        message = "this is a folder or a device, not a file"
        raise NotFoundError(message, where=Breadcrumb(path))
    return fd, status


def _unlink(real_root: str, target: str) -> None:
    """Take away a name in a folder below the root, which no link has come to stand for meanwhile."""
    from pennon.io.fenced import WALKS, open_folder_in  # noqa: PLC0415 - saves readers the import

    if not WALKS:
        os.unlink(target)
        return
    folder, name = os.path.split(target)
    fd = open_folder_in(real_root, folder)
    try:
        os.unlink(name, dir_fd=fd)
    finally:
        os.close(fd)


def _read_all(fd: int, size_bytes: int) -> bytes:
    """Return ``size_bytes`` bytes of a file, fewer if it was cut short meanwhile."""
    data = os.read(fd, size_bytes)
    while len(data) < size_bytes:
        more = os.read(fd, size_bytes - len(data))
        if not more:
            break
        data += more
    return data


def _sorted_paths(folder: str, prefix: str) -> list[str]:
    """Return the paths of the files of a folder and of those below it, sorted; a link to nothing is none."""
    try:
        with os.scandir(folder) as entries:
            every = list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    above = f"{prefix}/" if prefix else ""
    found = [above + each.name for each in every if each.is_file()]
    if len(found) < len(every):
        for each in every:
            if each.is_dir(follow_symlinks=False):
                found += _sorted_paths(each.path, above + each.name)
    found.sort()
    return found


def _folder_names(folder: str) -> list[str]:
    """Return the names of the folders in a folder; a name that is no text is left out."""
    try:
        with os.scandir(folder) as entries:
            found = [each.name for each in entries if each.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [name for name in found if name.isprintable() or _is_text(name)]


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _walk(folder: str, prefix: str) -> Iterator[ObjectInfo]:
    """Yield the files of a folder and of those below it, in no order; no folder is no error."""
    for path, entry in _files(folder, prefix):
        try:
            status = entry.stat()
        except FileNotFoundError:
            continue  # deleted since the folder was read
        yield ObjectInfo(path, status.st_size, _modified(status))


def _modified(status: os.stat_result) -> datetime:
    return datetime.fromtimestamp(status.st_mtime, UTC)


def _files(folder: str, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the files of a folder and of those below it; a link to nothing is none."""
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path, path)
            elif entry.is_file():
                yield path, entry


def _no_links(path: str) -> UnsupportedError:
    message = (
        "this file system has no hard links, and without them two writers could both win one"
        " version; commit from a file system that has them"
    )
    return UnsupportedError(message, where=Breadcrumb(path))


def _check_is_file(taken: str, path: str) -> None:
    """Raise FormatError if a name is that of a folder, a pipe or the like."""
    with suppress(FileNotFoundError):  # gone by now
        mode = os.lstat(taken).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            message = (
                "something that is no file has this name, and no file can be made; move it away"
            )
            raise FormatError(message, where=Breadcrumb(path))
