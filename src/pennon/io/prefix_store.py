"""A folder of a store as a store of its own: a branch of a table lies in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pennon.core.fast_dataclass import dataclass
from pennon.io.forwarding_store import ForwardingStore
from pennon.io.mapped import MappedReader, open_all
from pennon.io.paths import check_path, child_uri
from pennon.io.store import ObjectInfo, Store


@dataclass(frozen=True, slots=True)
class PrefixStore(ForwardingStore):
    """The store whose root is ``folder`` below the root of another one."""

    inner: Store
    folder: str

    def __post_init__(self) -> None:
        check_path(self.folder)

    @property
    def uri(self) -> str:
        """Return the folder's URI."""
        return child_uri(self.inner.uri, self.folder)

    def open_all(self, paths: Sequence[str]) -> list[MappedReader | None]:
        """See `pennon.io.mapped.OpensMany`."""
        return open_all(self.inner, [self._place(path)[1] for path in paths])

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects under a folder, sorted by path."""
        for info in self.inner.list(self._folder(prefix)):
            yield replace(info, path=self._relative(info.path))

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Yield path and size of the objects under a folder, sorted by path."""
        for path, size_bytes in self.inner.list_names(self._folder(prefix)):
            yield self._relative(path), size_bytes

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Yield the folders directly below a folder, sorted."""
        return map(self._relative, self.inner.list_folders(self._folder(prefix)))

    def _place(self, path: str) -> tuple[Store, str]:
        return self.inner, f"{self.folder}/{check_path(path)}"

    def _folder(self, prefix: str) -> str:
        return f"{self.folder}/{prefix}" if prefix else self.folder

    def _relative(self, path: str) -> str:
        return path.removeprefix(f"{self.folder}/")
