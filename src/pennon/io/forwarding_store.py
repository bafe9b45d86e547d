"""A store that passes every verb on to another: the base of those that change a few."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

import pyarrow as pa

from pennon.io.limits import FetchLimits
from pennon.io.store import ObjectInfo, ObjectReader, ObjectWriter, Store


class ForwardingStore:
    """Passes every verb on to the `Store` ``inner``, which a subclass has.

    A subclass whose objects lie elsewhere overrides ``_place``, and the listings, which name paths.
    """

    __slots__ = ()
    inner: Store

    def _place(self, path: str) -> tuple[Store, str]:
        """Return the store of an object, and its path there."""
        return self.inner, path

    @property
    def uri(self) -> str:
        """Return the root as the user wrote it."""
        return self.inner.uri

    @property
    def limits(self) -> FetchLimits | None:
        """Return how the store likes to be asked."""
        return self.inner.limits

    def open(self, path: str, size_bytes: int | None = None) -> ObjectReader:
        """Open an object."""
        store, path = self._place(path)
        return store.open(path, size_bytes)

    def read_whole(self, path: str) -> pa.Buffer:
        """Return the bytes of an object."""
        store, path = self._place(path)
        return store.read_whole(path)

    def info(self, path: str) -> ObjectInfo:
        """Return size and time of an object."""
        store, inner = self._place(path)
        return replace(store.info(inner), path=path)

    def identity(self, path: str, size_bytes: int | None = None) -> Hashable:
        """Return what tells the bytes of an object from all others."""
        store, path = self._place(path)
        return store.identity(path, size_bytes)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects under a folder, sorted by path."""
        return self.inner.list(prefix)

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Yield path and size of the objects under a folder, sorted by path."""
        return self.inner.list_names(prefix)

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Yield the folders directly below a folder, sorted."""
        return self.inner.list_folders(prefix)

    def open_writer(self, path: str) -> ObjectWriter:
        """Start a new object."""
        store, path = self._place(path)
        return store.open_writer(path)

    def put(self, path: str, data: bytes) -> None:
        """Write a small object whole."""
        store, path = self._place(path)
        store.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object whole and durably, unless the name is taken."""
        store, path = self._place(path)
        store.put_if_absent(path, data)

    def delete(self, path: str) -> None:
        """Delete an object."""
        store, path = self._place(path)
        store.delete(path)
