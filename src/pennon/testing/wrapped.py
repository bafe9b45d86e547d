"""A store around a store, which the others here build on."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Self, TypeAlias

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest
from pennon.io.forwarding_store import ForwardingStore
from pennon.io.store import ObjectInfo, ObjectReader, ObjectWriter, ReaderAround, Store

Data: TypeAlias = pa.Buffer | bytes | memoryview


class WrappedStore(ForwardingStore):
    """A store that passes every verb on, after telling ``before(verb, path)`` of it.

    The base of all others here.  The verbs of a store are ``open``, ``list``, ``put``,
    ``put_if_absent``, ``delete`` and ``open_writer``; those of its objects are ``read`` (one
    round), ``write`` and ``close``.
    """

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def before(self, verb: str, path: str) -> None:
        """Do nothing; called before each verb, and what it raises is what the caller sees."""

    def after(self, verb: str, path: str) -> None:
        """Do nothing; called after each verb that succeeded, and what it raises hides that."""

    def around_read(self, path: str, requests: Sequence[ByteRequest]) -> None:
        """Do nothing; called before each round of reads, after `before`."""

    def is_mapped(self, inner: ObjectReader) -> bool:
        """Tell whether an object costs no requests: as the wrapped store says."""
        return inner.is_mapped

    def cut(self, path: str, data: Data) -> Data:  # noqa: ARG002
        """Return what of ``data`` reaches the object; a torn write is less than all."""
        return data

    def open(self, path: str, size_bytes: int | None = None) -> ObjectReader:
        """Open an object for reading."""
        self.before("open", path)
        reader = WrappedReader(self, self.inner.open(path, size_bytes))
        self.after("open", path)
        return reader

    def read_whole(self, path: str) -> pa.Buffer:
        """Read a whole object; told of as one round."""
        self.before("read", path)
        data = self.inner.read_whole(path)
        self.around_read(path, [ByteRange(0, data.size)])
        self.after("read", path)
        return data

    def info(self, path: str) -> ObjectInfo:
        """Return size and time of an object; told of as it is opened."""
        self.before("open", path)
        found = self.inner.info(path)
        self.after("open", path)
        return found

    def identity(self, path: str, size_bytes: int | None = None) -> Hashable:
        """Return an identity of this store's own, so that nothing is shared around it."""
        return self, self.inner.identity(path, size_bytes)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List a folder; counted when the first name is asked for."""
        self.before("list", prefix)
        yield from self.inner.list(prefix)
        self.after("list", prefix)

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """List a folder; counted as `list`."""
        self.before("list", prefix)
        yield from self.inner.list_names(prefix)
        self.after("list", prefix)

    def list_folders(self, prefix: str) -> Iterator[str]:
        """List the folders of a folder; counted as `list`."""
        self.before("list", prefix)
        yield from self.inner.list_folders(prefix)
        self.after("list", prefix)

    def open_writer(self, path: str) -> ObjectWriter:
        """Start a new object."""
        self.before("open_writer", path)
        writer = WrappedWriter(self, path, self.inner.open_writer(path))
        self.after("open_writer", path)
        return writer

    def put(self, path: str, data: bytes) -> None:
        """Write a small object whole."""
        self.before("put", path)
        self.inner.put(path, bytes(self.cut(path, data)))
        self.after("put", path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object whole, unless the name is taken."""
        self.before("put_if_absent", path)
        self.inner.put_if_absent(path, data)
        self.after("put_if_absent", path)

    def delete(self, path: str) -> None:
        """Delete an object."""
        self.before("delete", path)
        self.inner.delete(path)
        self.after("delete", path)


class WrappedReader(ReaderAround):
    """An `ObjectReader` that tells its store of every round."""

    def __init__(self, store: WrappedStore, inner: ObjectReader) -> None:
        super().__init__(inner)
        self._store = store

    @property
    def is_mapped(self) -> bool:
        """Return what the store says."""
        return self._store.is_mapped(self._inner)

    def read(self, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        """Answer one round of requests."""
        self._store.before("read", self.path)
        self._store.around_read(self.path, requests)
        answers = self._inner.read(requests)
        self._store.after("read", self.path)
        return answers


class WrappedWriter:
    """An `ObjectWriter` that tells its store of every call."""

    def __init__(self, store: WrappedStore, path: str, inner: ObjectWriter) -> None:
        self._store = store
        self._path = path
        self._inner = inner

    def write(self, data: Data) -> None:
        """Append bytes."""
        self._store.before("write", self._path)
        self._inner.write(self._store.cut(self._path, data))
        self._store.after("write", self._path)

    def tell(self) -> int:
        """Return how many bytes were written so far."""
        return self._inner.tell()

    def close(self) -> None:
        """Make the object visible."""
        self._store.before("close", self._path)
        self._inner.close()
        self._store.after("close", self._path)

    def abort(self) -> None:
        """Give the object up; this never fails."""
        self._inner.abort()

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the writer, or abort it when an exception is on its way."""
        if kind is not None:
            self.abort()
            return
        try:
            self.close()
        except BaseException:
            self.abort()
            raise
