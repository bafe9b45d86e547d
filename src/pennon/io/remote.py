"""Object stores: S3, Google Cloud Storage, Azure, and plain HTTP servers for reading.

The commit primitive is a conditional PUT (``If-None-Match: *`` or its like).  Some servers that
speak S3 ignore the condition and overwrite; two writers would then both win one version, and one of
them would lose its data without a word.  So a store with an endpoint of its own is put to the test
once per process before the first commit (`_Probe`).

Throttling, 5xx answers and lost connections are retried by obstore, with back-off
(``client_max_retries``, ``client_retry_timeout``), what breaks off in the middle by
`pennon.io.retry_reads`.  A retried PUT whose first answer was lost finds
its own object and reports `AlreadyExistsError`: whoever commits must look whose object it is.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest
from pennon.core.fast_dataclass import dataclass
from pennon.core.io_counters import READ
from pennon.core.telemetry import requests_a
from pennon.core.units import MIB
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    Breadcrumb,
    CannotListError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from pennon.io.fetch import Fetcher
from pennon.io.limits import OBJECT_STORE, FetchLimits, is_express, limits_of
from pennon.io.paths import Location, check_path, check_prefix
from pennon.io.remote_errors import Calls
from pennon.io.remote_forks import use_obstore
from pennon.io.store import ObjectInfo
from pennon.io.writer_base import Ending

if TYPE_CHECKING:
    from pennon.io.remote_client import Client
    from pennon.io.remote_options import RemoteOptions

T = TypeVar("T")

SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss", "http", "https")
_ENDPOINTS = ("endpoint", "endpoint_url", "aws_endpoint", "aws_endpoint_url")
_PART_BYTES = 8 * MIB
_PARTS_AT_ONCE = 4
_LIST_CHUNK = 1000
_NO_RETRIES = ("client_max_retries", "0")
"""For listings of web servers: those who know of none say so in many ways, one of them is a 501."""


def scheme_of(store: RemoteStore) -> str:
    """Return the scheme of a store's URI, under which its requests are counted."""
    return store.location.scheme


def open_remote(location: Location, uri: str, options: Mapping[str, str]) -> RemoteStore:
    """Return the store at ``location``; raises ArgumentError for a scheme that is none of ours."""
    if location.scheme not in SCHEMES:
        known = ", ".join(("file", "memory", "hf", *SCHEMES))
        message = f"no store is known for {location.scheme}://; known are {known}"
        raise ArgumentError(message)
    if not location.authority:
        message = f"{location.scheme}:// URIs name a bucket, container or host"
        raise ArgumentError(message)
    pairs = tuple(sorted((str(key), str(value)) for key, value in options.items()))
    return RemoteStore(uri, location, pairs, limits_of(location))


@dataclass(frozen=True, slots=True)
class RemoteStore:
    """A `Store` in a bucket.  It holds no connection: it pickles, and connects on first use."""

    uri: str = field(repr=False)
    location: Location = field(repr=False)
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    limits: FetchLimits = OBJECT_STORE

    def __repr__(self) -> str:
        """Return scheme, bucket and path; never the options, nor a user and password."""
        host = self.location.authority.rpartition("@")[2]
        return f"RemoteStore({self.location.scheme}://{host}/{self.location.path})"

    def open(self, path: str, size_bytes: int | None = None) -> RemoteReader:
        """Open an object: one request, or none if ``size_bytes`` is known.

        With a known size, a missing object is noticed by the first read.
        """
        check_path(path)
        if size_bytes is None:
            size_bytes = self.info(path).size_bytes
        return RemoteReader(self, path, size_bytes)

    @requests_a("get", scheme_of, lambda _, found, __: found.size)
    def read_whole(self, path: str) -> pa.Buffer:
        """Return the bytes of an object, by one request."""
        check_path(path)
        found = self._read(path, lambda obstore, client: obstore.get(client, path).bytes())
        return pa.py_buffer(found)

    @requests_a("head", scheme_of)
    def info(self, path: str) -> ObjectInfo:
        """Return size and time of an object, by one request."""
        check_path(path)
        found = self._call(path, lambda obstore, client: obstore.head(client, path))
        return _info(path, found)

    def identity(self, path: str, size_bytes: int | None = None) -> Hashable:
        """Return the path and the size, if it is known; makes no request."""
        return self.location, self.options, path, size_bytes

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects under a folder, sorted by path, page by page where the store sorts."""
        folder = check_prefix(prefix)
        if self._lists_in_order:
            return self._list(folder)
        return iter(sorted(self._list(folder), key=lambda info: info.path))

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Yield path and size of the objects under a folder, sorted by path; see `list`."""
        return ((info.path, info.size_bytes) for info in self.list(prefix))

    @requests_a("list", scheme_of)
    def list_folders(self, prefix: str) -> Iterator[str]:
        """Yield the folders directly below a folder, sorted, by a listing with a delimiter.

        Raises CannotListError for web servers, whose listings need not tell folders from files.
        """
        folder = check_prefix(prefix)
        if self._is_web:
            message = "folders are not listed on web servers"
            raise CannotListError(message, where=Breadcrumb(folder))
        found = self._call(
            folder, lambda obstore, client: obstore.list_with_delimiter(client, folder or None)
        )
        return iter(sorted(each.rstrip("/") for each in found["common_prefixes"]))

    def open_writer(self, path: str) -> RemoteWriter:
        """Start a new object: a multi-part upload once it is larger than one part."""
        self._refuse_read_only(path)
        return RemoteWriter(self, check_path(path))

    def put(self, path: str, data: bytes) -> None:
        """Write a small object whole, replacing what was there."""
        self._put(path, data, "overwrite")

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object whole, unless the name is taken."""
        self._refuse_read_only(path)
        if self._is_doubtful:
            self._probe(path)
        self._put(path, data, "create")

    @requests_a("delete", scheme_of)
    def delete(self, path: str) -> None:
        """Delete an object; none is no error."""
        self._refuse_read_only(path)
        check_path(path)
        with contextlib.suppress(NotFoundError):
            self._call(path, lambda obstore, client: obstore.delete(client, path))

    @requests_a("get", scheme_of, lambda _, found, __: found.size)
    def read_extent(self, path: str, extent: ByteRange) -> pa.Buffer:
        """Return one contiguous range, by one request."""
        start, end = extent.position, extent.end
        found = self._read(
            path, lambda obstore, client: obstore.get_range(client, path, start=start, end=end)
        )
        buffer = pa.py_buffer(found)
        if buffer.size != extent.size_bytes:
            message = f"the store gave {buffer.size} of {extent.size_bytes} bytes"
            raise StoreError(message, where=Breadcrumb(path, byte_range=(start, end)))
        return buffer

    def start_upload(self, path: str) -> Any:
        """Return obstore's writer for a new object."""
        return self._call(
            path,
            lambda obstore, client: obstore.open_writer(
                client, path, buffer_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE
            ),
        )

    def calls(self) -> Calls:
        """Return what makes calls to obstore and translates their failures."""
        return Calls(self._connect()[1].secrets)

    def _connect(self, *more: tuple[str, str]) -> tuple[Client, RemoteOptions]:
        """Return this process's client, with ``more`` options than the store has, and them all."""
        use_obstore()
        from pennon.io.remote_client import connect  # noqa: PLC0415 - saves obstore

        return connect(self.location, (*self.options, *more))

    def _call(self, path: str, action: Callable[[Any, Any], T], *more: tuple[str, str]) -> T:
        """Return ``action(obstore, client)``, with ``more`` options than the store has."""
        client, options = self._connect(*more)
        import obstore  # noqa: PLC0415 - saves obstore, and is anew after a fork

        return Calls(options.secrets).call(path, lambda: action(obstore, client))

    def _read(self, path: str, action: Callable[[Any, Any], T]) -> T:
        """Return ``action(obstore, client)``, which reads and is done again if its answer breaks."""
        patience = self._connect()[1].patience
        try:
            return patience.wait_out(lambda: self._call(path, action))
        except AlreadyExistsError:
            message = "the store refused to read an object that is being replaced"
        raise StoreError(message, where=Breadcrumb(path))

    @requests_a("put", scheme_of, lambda _, __, given: len(given[1]))
    def _put(self, path: str, data: bytes, mode: str) -> None:
        self._refuse_read_only(path)
        check_path(path)
        self._call(
            path,
            lambda obstore, client: obstore.put(client, path, data, mode=mode, use_multipart=False),
        )

    def _list(self, folder: str) -> Iterator[ObjectInfo]:
        if not self._is_web:
            yield from self._list_pages(folder)
            return
        try:
            yield from self._list_pages(folder, _NO_RETRIES)
        except StoreError as error:
            message = f"this web server does not list its files: {error.message}"
        else:
            return
        raise CannotListError(message, where=Breadcrumb(folder))

    def _list_pages(self, folder: str, *more: tuple[str, str]) -> Iterator[ObjectInfo]:
        prefix = folder or None
        pages = self._call(
            folder,
            lambda obstore, client: iter(obstore.list(client, prefix, chunk_size=_LIST_CHUNK)),
            *more,
        )
        while page := self._next_page(folder, pages):
            for found in page:
                yield _info(found["path"], found)

    @requests_a("list", scheme_of)
    def _next_page(self, folder: str, pages: Iterator[Any]) -> Any:
        return self._call(folder, lambda _, __: next(pages, None))

    @property
    def _is_web(self) -> bool:
        return self.location.scheme.startswith("http")

    @property
    def _lists_in_order(self) -> bool:
        """S3 Express does not sort its listings, and an HTTP server may do anything."""
        return not is_express(self.location) and not self._is_web

    def _refuse_read_only(self, path: str) -> None:
        if self._is_web:
            message = "tables on plain HTTP servers are read-only"
            raise UnsupportedError(message, where=Breadcrumb(path))

    @property
    def _is_doubtful(self) -> bool:
        """Tell whether this is something that speaks S3 but need not be S3."""
        if not self.location.scheme.startswith("s3"):
            return False
        named = {key.lower() for key, _ in self.options}
        variables = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
        return not named.isdisjoint(_ENDPOINTS) or any(os.environ.get(v) for v in variables)

    def _probe(self, path: str) -> None:
        """Raise UnsupportedError if the store lets two writers create one object."""
        key = (self.location.authority, self.options)
        if key not in _PROVEN | _REFUSED:
            proven = self._creates_once(path.rpartition("/")[0])
            (_PROVEN if proven else _REFUSED).add(key)
        if key in _REFUSED:
            message = (
                "this store overwrites objects that it was asked to create, so two writers could both"
                " win one version; commit through a manifest store (s3+ddb://, s3+sqlite://)"
            )
            raise UnsupportedError(message, where=Breadcrumb(path))

    def _creates_once(self, folder: str) -> bool:
        """Tell whether an object can be created only once."""
        probe = f"{folder}/" * bool(folder) + f".tmp_probe_{uuid.uuid4().hex}"
        self._put(probe, b"1", "create")
        try:
            self._put(probe, b"2", "create")
        except AlreadyExistsError:
            return True
        finally:
            with contextlib.suppress(StoreError):
                self.delete(probe)
        return False


def _info(path: str, found: Mapping[str, Any]) -> ObjectInfo:
    """Return what obstore says of an object; a weak tag (``W/``) does not tell its bytes."""
    tag = found.get("e_tag")
    tag = tag if tag and not tag.startswith("W/") else None
    return ObjectInfo(path, int(found["size"]), found["last_modified"], tag)


_Place: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
_PROVEN: set[_Place] = set()
_REFUSED: set[_Place] = set()
"""Stores that were put to the test in this process, and what came of it."""


class ReadsExtents(Protocol):
    """A store that answers one contiguous range by one request."""

    @property
    def limits(self) -> FetchLimits:
        """Return how the store likes to be asked."""

    def read_extent(self, path: str, extent: ByteRange) -> pa.Buffer:
        """Return the bytes of a range, all of them; raises StoreError if it cannot."""


class RemoteReader:
    """An `ObjectReader` for one object of a remote store."""

    __slots__ = ("_path", "_size_bytes", "_store")

    def __init__(self, store: ReadsExtents, path: str, size_bytes: int) -> None:
        self._store = store
        self._path = path
        self._size_bytes = size_bytes

    @property
    def path(self) -> str:
        """Return the path relative to the store's root."""
        return self._path

    @property
    def size_bytes(self) -> int:
        """Return the object's size."""
        return self._size_bytes

    @property
    def is_mapped(self) -> bool:
        """Return False: every range costs a request or a part of one."""
        return False

    def read(self, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        """Answer one round of requests, coalesced and at once."""
        store, path = self._store, self._path
        fetcher = Fetcher(
            path, self._size_bytes, store.limits, lambda extent: store.read_extent(path, extent)
        )
        found = fetcher.fetch(requests)
        READ.ranges += len(found)
        READ.size_bytes += sum([buffer.size for buffer in found])
        return found

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Pickle as the place to read from."""
        return RemoteReader, (self._store, self._path, self._size_bytes)

    def __repr__(self) -> str:
        """Return the path and size."""
        return f"RemoteReader({self._path!r}, {self._size_bytes} bytes)"


class RemoteWriter(Ending):
    """An `ObjectWriter` that uploads parts while it is written to, four of 8 MiB at a time.

    An upload that was given up never becomes visible, but its parts stay with the store until the
    bucket's rule for unfinished uploads removes them: obstore has no call that does.
    """

    def __init__(self, store: RemoteStore, path: str) -> None:
        self._calls = store.calls()
        self._path = path
        self.scheme = store.location.scheme
        self._upload = store.start_upload(path)
        self._size = 0

    def write(self, data: pa.Buffer | bytes | memoryview) -> None:
        """Append bytes."""
        upload = self._open_upload()
        view = memoryview(data).cast("B")
        if len(view):
            self._calls.call(self._path, lambda: upload.write(view))
        self._size += len(view)

    def tell(self) -> int:
        """Return how many bytes were written so far."""
        return self._size

    def close(self) -> None:
        """Finish the upload; the object is durable and visible then.  Closing twice is fine."""
        upload, self._upload = self._upload, None
        if upload is not None:
            self._finish(upload)

    @requests_a("put", lambda writer: writer.scheme, lambda writer, _, __: writer.tell())
    def _finish(self, upload: Any) -> None:
        self._calls.call(self._path, upload.close)

    def abort(self) -> None:
        """Give the upload up."""
        self._upload = None

    def _open_upload(self) -> Any:
        if self._upload is None:
            message = "the writer is closed"
            raise ValueError(message)
        return self._upload
