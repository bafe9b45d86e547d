"""Paths and URIs: what may be opened, and where it lies.

A manifest is untrusted bytes, and it names files.  Every name passes `check_path` before a store
touches it, so that no table can make its reader open ``/etc/passwd`` or a neighbour's table.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError, FormatError

TRUSTED_BASES: Final = "PENNON_TRUSTED_BASES"
"""The environment's list of places outside of a table that may be read, separated like ``PATH``."""
_DRIVE = re.compile(r"[A-Za-z]:")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(?=/)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DECODE_ROUNDS = 4
_SIMPLE = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]*(?:/[A-Za-z0-9_=-][A-Za-z0-9_.=-]*)*")
"""What nearly all paths are, and nothing hides in: no segment begins with a dot."""


def check_path(path: str) -> str:
    """Return ``path`` if it stays below any root that it is joined to.

    A path is segments joined by single slashes.  Percent codes are judged by what they stand for,
    however often they are wrapped (``%252e%252e``), because some store decodes them, but are kept.
    Raises FormatError.
    """
    if not _SIMPLE.fullmatch(path) and _escapes(path):
        message = f"path {path[:200]!r} is not a plain path below the root of its table"
        raise FormatError(message)
    return path


def _escapes(path: str) -> bool:
    for _ in range(_DECODE_ROUNDS):
        if not _is_plain(path):
            return True
        decoded = unquote(path)
        if decoded == path:
            return False
        path = decoded
    return True


def _is_plain(path: str) -> bool:
    if "\\" in path or _CONTROL.search(path) or _DRIVE.match(path):
        return False
    return all(segment not in {"", ".", ".."} for segment in path.split("/"))


def safe_join(root: str, path: str) -> str:
    """Return ``root/path``; raises FormatError if ``path`` could leave ``root``."""
    check_path(path)
    return f"{root.rstrip('/')}/{path}" if root else path


def check_prefix(prefix: str) -> str:
    """Return a folder to list, without its last slash; the empty string is the root itself."""
    prefix = prefix.removesuffix("/")
    return check_path(prefix) if prefix else ""


def folders_of(paths: Iterable[str], folder: str) -> Iterator[str]:
    """Yield the folders directly below a folder, sorted, given the paths of all objects in it."""
    start = len(folder) + 1 if folder else 0
    below = (path[start:].partition("/") for path in paths)
    names = {name for name, slash, _ in below if slash}
    return iter(sorted(f"{folder}/{name}" if folder else name for name in names))


def real_path(path: str) -> str:
    """Return an absolute path with all symbolic links followed; it need not exist."""
    return os.path.realpath(path) if _has_link("", path.lstrip("/")) else path


def resolve_below(real_root: str, path: str) -> str:
    """Return the real path of a folder to write to below ``real_root``, with all links followed.

    ``real_root`` has none itself.  Raises FormatError if a link leads out of the root: what is read
    may lie elsewhere, what is written or deleted may not.
    """
    joined = safe_join(real_root, path)
    if not _has_link(real_root, path):
        return joined
    real = os.path.realpath(joined)
    if real != joined and not real.startswith(real_root.rstrip("/") + "/"):
        message = f"path {path[:200]!r} is a symbolic link that leaves the root of its table"
        raise FormatError(message)
    return real


def _has_link(real_root: str, path: str) -> bool:
    """Tell whether a folder or file on the way down to ``path`` is a link, or cannot be seen."""
    here = real_root.rstrip("/")
    try:
        for name in path.split("/"):
            here = f"{here}/{name}"
            if stat.S_ISLNK(os.lstat(here).st_mode):
                return True
    except OSError:
        return True
    return False


@dataclass(frozen=True, slots=True)
class Location:
    """A URI taken apart.

    ``scheme`` is lower case (``file`` for plain paths), ``authority`` the bucket, container or
    host, ``path`` what follows: absolute for files, without slashes at its ends for all others.
    """

    scheme: str
    authority: str
    path: str


def parse_uri(uri: str | os.PathLike[str]) -> Location:
    """Take a plain path or a URI apart.

    Relative paths are made absolute now, so that a later change of folder does no harm.  Raises
    ArgumentError if there is nothing to open.
    """
    text = os.fspath(uri)
    if not text or "\x00" in text:
        message = f"{text!r} is neither a path nor a URI"
        raise ArgumentError(message)
    found = _SCHEME.match(text)
    if found is None:
        is_absolute = text.startswith("/")
        clean = os.path.normpath if is_absolute else os.path.abspath
        return Location("file", "", clean(text if is_absolute else os.path.expanduser(text)))
    scheme = found.group(1).lower()
    if scheme == "file":
        return Location("file", "", _file_path(text))
    parts = urlsplit(text)
    if parts.query or parts.fragment:
        message = f"URIs of tables have no query and no fragment: {_without_secrets(text)!r}"
        raise ArgumentError(message)
    return Location(scheme, parts.netloc, unquote(parts.path).strip("/"))


def has_dot_segments(path: str) -> bool:
    """Tell whether a remote path may mean a folder above it to some server.

    Such are ``..`` and ``.``, however often they are percent-encoded, and where a server takes a
    backslash for a slash, or drops what follows a semicolon.
    """
    for _ in range(_DECODE_ROUNDS):
        segments = re.split(r"[/\\]", path)
        if any(each.partition(";")[0].strip() in {".", ".."} for each in segments):
            return True
        decoded = unquote(path)
        if decoded == path:
            return _CONTROL.search(path) is not None
        path = decoded
    return True


def child_uri(uri: str, folder: str) -> str:
    """Return the URI of a folder below another place; what follows a question mark stays the last."""
    place, mark, query = uri.partition("?") if "://" in uri else (uri, "", "")
    return f"{place.rstrip('/')}/{folder}{mark}{query}"


def _file_path(uri: str) -> str:
    """Return the path of ``file:///a/b``, of ``file:/a/b`` (Hadoop) or ``file://localhost/a/b``."""
    rest = unquote(uri.partition(":")[2])
    if rest.startswith("//"):
        host, slash, below = rest[2:].partition("/")
        if host not in {"", "localhost"}:
            message = f"{uri!r} names a host; files are opened on this machine only"
            raise ArgumentError(message)
        rest = slash + below
    return os.path.abspath(rest)


def _without_secrets(uri: str) -> str:
    """Return a URI without its query, which may hold a signature, and without user and password."""
    head = re.split(r"[?#]", uri, maxsplit=1)[0]
    return re.sub(r"//[^/@]*@", "//", head)
