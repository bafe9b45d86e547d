"""Repositories of the Hugging Face Hub, for reading: ``hf://datasets/{owner}/{name}/{path}``.

A revision stands behind the repository's name (``…/{name}@{revision}/…``); without one it is the newest.
The package ``huggingface_hub`` does the reading, through fsspec, with the token that it knows or that is given.
It is imported when it is needed, and there is no connection to keep: the store pickles, and survives a fork.

Every file is one commit of the repository there, and none has a condition: tables are not written in
place.  They are written elsewhere, and uploaded whole.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final, NoReturn, TypeVar

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange
from pennon.core.extras import not_installed
from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError, Breadcrumb, NotFoundError, StoreError, UnsupportedError
from pennon.io.limits import WEB_SERVER, FetchLimits
from pennon.io.paths import check_prefix, folders_of, safe_join
from pennon.io.remote import RemoteReader
from pennon.io.remote_errors import masked
from pennon.io.store import ObjectInfo, ObjectWriter

T = TypeVar("T")

_OPTIONS: Final = {"token": "token", "hf_token": "token", "endpoint": "endpoint"}
_SEGMENTS: Final = 3
"""A kind (``datasets``), an owner and a name; a model's URI has no kind, but a folder of the table."""
_UNKNOWN_TIME: Final = datetime.fromtimestamp(0, UTC)


def open_hub(uri: str, options: Mapping[str, str]) -> HubStore:
    """Return the store at a URI ``hf://…``; nothing is asked yet.

    ``options``: ``token`` (or ``hf_token``) and ``endpoint``; others give a warning.  Raises ArgumentError
    for a URI that names no folder of a repository.
    """
    root = re.sub(r"^hf:/*", "", uri, flags=re.IGNORECASE).rstrip("/")
    if len(root.split("/")) < _SEGMENTS:
        message = f"{uri!r} names no folder of a repository: hf://datasets/OWNER/NAME/FOLDER"
        raise ArgumentError(message)
    unknown = sorted(
        set(options) - set(_OPTIONS) - {"hf"}
    )  # `datasets` passes its own settings on so
    if unknown:
        message = f"storage options that hf:// does not know: {', '.join(unknown)}; it knows {', '.join(_OPTIONS)}"
        warnings.warn(message, stacklevel=2)
    known = {_OPTIONS[key]: value for key, value in options.items() if key in _OPTIONS and value}
    return HubStore(uri, root, tuple(sorted(known.items())))


@dataclass(frozen=True, slots=True)
class HubStore:
    """A `Store` in a repository of the Hub; all that writes raises UnsupportedError."""

    uri: str
    root: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    limits: FetchLimits = WEB_SERVER

    def open(self, path: str, size_bytes: int | None = None) -> RemoteReader:
        """Open an object: one request, or none if ``size_bytes`` is known."""
        safe_join(self.root, path)
        if size_bytes is None:
            size_bytes = self.info(path).size_bytes
        return RemoteReader(self, path, size_bytes)

    def read_whole(self, path: str) -> pa.Buffer:
        """Return the bytes of an object."""
        place = safe_join(self.root, path)
        return pa.py_buffer(self._call(path, lambda hub: hub.cat_file(place)))

    def info(self, path: str) -> ObjectInfo:
        """Return size, time and tag of an object."""
        place = safe_join(self.root, path)
        found = self._call(path, lambda hub: hub.info(place))
        if found["type"] != "file":
            message = "there is no such object"
            raise NotFoundError(message, where=Breadcrumb(path))
        return _info(path, found)

    def identity(self, path: str, size_bytes: int | None = None) -> Hashable:
        """Return the path and the size, if it is known; makes no request."""
        return self.root, self.options, path, size_bytes

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects under a folder, sorted by path, as they are now."""
        folder = check_prefix(prefix)
        place = safe_join(self.root, folder) if folder else self.root

        def find(hub: Any) -> tuple[str, dict[str, Any]]:
            hub.invalidate_cache(place)
            # The names found have the revision as the Hub's package spells it.
            above = hub.resolve_path(place).unresolve()
            return f"{above}/", hub.find(place, detail=True)

        try:
            above, found = self._call(folder, find)
        except NotFoundError:
            return
        start = f"{folder}/" if folder else ""
        for name, each in sorted(found.items()):
            if name.startswith(above):
                yield _info(start + name.removeprefix(above), each)

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Yield path and size of the objects under a folder, sorted by path."""
        return ((info.path, info.size_bytes) for info in self.list(prefix))

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Yield the folders directly below a folder, sorted."""
        folder = check_prefix(prefix)
        return folders_of((info.path for info in self.list(folder)), folder)

    def open_writer(self, path: str) -> ObjectWriter:
        """Raise UnsupportedError."""
        _refuse(path)

    def put(self, path: str, data: bytes) -> None:  # noqa: ARG002 - the verb's signature
        """Raise UnsupportedError."""
        _refuse(path)

    def put_if_absent(self, path: str, data: bytes) -> None:  # noqa: ARG002 - the verb's signature
        """Raise UnsupportedError."""
        _refuse(path)

    def delete(self, path: str) -> None:
        """Raise UnsupportedError."""
        _refuse(path)

    def read_extent(self, path: str, extent: ByteRange) -> pa.Buffer:
        """Return one contiguous range, by one request."""
        place = safe_join(self.root, path)

        def read(hub: Any) -> Any:
            # The size is needed only to clip; known, it saves the question.
            with hub.open(place, "rb", cache_type="none", size=extent.end) as file:
                file.seek(extent.position)
                return file.read(extent.size_bytes)

        buffer = pa.py_buffer(self._call(path, read))
        if buffer.size != extent.size_bytes:
            message = f"the Hub gave {buffer.size} of {extent.size_bytes} bytes"
            raise StoreError(message, where=Breadcrumb(path))
        return buffer

    def _call(self, path: str, action: Callable[[Any], T]) -> T:
        """Return ``action(filesystem)``; raises one of Pennon's errors, without the token."""
        fsspec = _fsspec()
        try:
            return action(fsspec.filesystem("hf", **dict(self.options)))
        except FileNotFoundError:
            failure: NotFoundError | StoreError = NotFoundError(
                "there is no such object", where=Breadcrumb(path)
            )
        except Exception as error:  # noqa: BLE001 - of the HTTP client that the Hub's package uses
            secrets = [value for key, value in self.options if key == "token"]
            text = masked(f"{type(error).__name__}: {error}", secrets)
            failure = StoreError(text, where=Breadcrumb(path))
        # Outside of the handler, so that the original is not the context of ours.
        raise failure


def _fsspec() -> Any:
    try:
        return import_module("fsspec")
    except ImportError:
        raise not_installed("huggingface_hub", "hf://") from None


def _info(path: str, found: Mapping[str, Any]) -> ObjectInfo:
    commit = found.get("last_commit")
    modified = getattr(commit, "date", None) or _UNKNOWN_TIME
    return ObjectInfo(path, int(found["size"]), modified, found.get("blob_id"))


def _refuse(path: str) -> NoReturn:
    message = (
        "tables on the Hugging Face Hub are read-only; write the table elsewhere, then upload its folder "
        "(`hf upload OWNER/NAME FOLDER --repo-type dataset`)"
    )
    raise UnsupportedError(message, where=Breadcrumb(path))
