"""Local files below allowed folders only: no link leads out of them.

A path is walked from such a folder down, each segment opened in the one above it and none through a
link, so that what was judged is what is opened, whatever others do to the folders meanwhile.  Only
where that finds a link, the path is resolved, judged, and walked anew.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from typing import Final

from pennon.errors import UntrustedPathError
from pennon.io.paths import TRUSTED_BASES

WALKS: Final = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Whether the system opens a name in a folder that is open.  Windows does not."""
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_A_LINK: Final = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}
"""What systems answer where a link stands in the way, or a file where a folder should be."""


def real_folders(places: Iterable[str]) -> tuple[str, ...]:
    """Return folders with all symbolic links followed."""
    return tuple(dict.fromkeys(os.path.realpath(place) for place in places))


def resolve_in(folders: Sequence[str], path: str) -> str:
    """Return a path with all symbolic links followed.

    Raises UntrustedPathError if it is not below one of the folders, which have no links themselves.
    """
    real = os.path.realpath(path)
    if covering(folders, real) is None:
        raise _leads_out(path, real)
    return real


def open_in(folders: Sequence[str], path: str, flags: int) -> int:
    """Open what lies at a path and below one of the folders, which have no links themselves.

    Raises UntrustedPathError if links lead out of them, OSError as `os.open`.
    """
    if not WALKS:
        return _open_resolved(folders, path, flags)
    folder = covering(folders, path)
    if folder is not None:
        try:
            return _walk(folder, path, flags)
        except OSError as error:
            if error.errno not in _A_LINK:
                raise
    real = os.path.realpath(path)
    folder = covering(folders, real)
    if folder is None:
        raise _leads_out(path, real)
    return _walk(folder, real, flags)


def open_folder_in(folder: str, path: str) -> int:
    """Open a folder below another one, to change what is in it."""
    return open_in((folder,), path, _FOLDER)


def covering(folders: Sequence[str], path: str) -> str | None:
    """Return the folder that a path is, or lies below, by the text of both; None if there is none."""
    for folder in folders:
        if path == folder or path.startswith(folder.rstrip("/") + "/"):
            return folder
    return None


def _walk(folder: str, path: str, flags: int) -> int:
    """Open a path below a folder, segment by segment and through no link."""
    below = path[len(folder) :].strip("/")
    *above, last = [folder, *below.split("/")] if below else [folder]
    inside: int | None = None
    try:
        for name in above:
            next_one = os.open(name, _FOLDER, dir_fd=inside)
            if inside is not None:
                os.close(inside)
            inside = next_one
        return os.open(last, flags | _NO_LINK, dir_fd=inside)
    finally:
        if inside is not None:
            os.close(inside)


def _open_resolved(folders: Sequence[str], path: str, flags: int) -> int:
    """Open a path where no folder can be walked: it must lead to the same file before and after."""
    fd = os.open(resolve_in(folders, path), flags)
    is_same = False
    try:
        is_same = os.path.samestat(os.stat(resolve_in(folders, path)), os.fstat(fd))
    finally:
        if not is_same:
            os.close(fd)
    if not is_same:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return fd


def _leads_out(path: str, real: str) -> UntrustedPathError:
    message = (
        f"{path!r} is a symbolic link to {real!r}, which lies in no place that is trusted; to read it,"
        f" trust that place: dataset(..., trusted_bases=[{real!r}]), or {TRUSTED_BASES}={real}"
    )
    return UntrustedPathError(message)
