"""Base paths: files of a table that lie in another place, and who allows to read them.

The versions of a branch, and of a shallow clone, name files that they did not write.  A data file
or deletion file with a ``base_id`` lies below that base path of the manifest.  In Pennon such a file
has the store path ``@{base_id}/data/x.lance``, and a `BasedStore` knows where that is; all else is a
table's own.

A manifest is untrusted bytes.  Inside of the table's own root, where all its branches are, a base is
read and written without question; which others are, `pennon.io.trust` says.  Nothing is ever deleted
in one.

Source: table.proto; commit-and-faults reference T26; ledger F-341.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from urllib.parse import unquote

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError, FormatError, UntrustedPathError
from pennon.io import open_store
from pennon.io.forwarding_store import ForwardingStore
from pennon.io.local import LocalStore
from pennon.io.mapped import MappedReader, open_all
from pennon.io.paths import TRUSTED_BASES, has_dot_segments, parse_uri
from pennon.io.prefix_store import PrefixStore
from pennon.io.store import ObjectInfo, ObjectWriter, Store
from pennon.io.trust import Trust as Trust
from pennon.io.trust import below as below
from pennon.io.trust import is_next_to, kept_to, located, plain_uri, without_manifest_store
from pennon.table.fragment import BasePath
from pennon.table.manifest import Manifest
from pennon.table.refs.tags_and_branches import branch_folder

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:/")
_BASED = re.compile(r"@(\d+)/(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BasedStore(ForwardingStore):
    """A table's own folder, ``inner``, and its base paths under ``@{id}/``."""

    inner: Store
    bases: tuple[BasePath, ...]
    trust: Trust = field(default_factory=Trust)
    _opened: dict[int, Store] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[BasedStore], tuple[Store, tuple[BasePath, ...], Trust]]:
        """Pickle without the stores opened so far, and with what this process named."""
        return BasedStore, (self.inner, self.bases, self.trust.within(root_of(self).uri))

    def identity(self, path: str, size_bytes: int | None = None) -> Hashable:
        """Return what tells the bytes of an object from all others."""
        store, inner = self._place(path)
        found = store.identity(inner, size_bytes)
        return found if store is self.inner else (store.uri, found)

    def open_all(self, paths: Sequence[str]) -> list[MappedReader | None]:
        """See `pennon.io.mapped.OpensMany`."""
        places = [self._place(path) for path in paths]
        found: list[MappedReader | None] = [None] * len(paths)
        for store in {id(each): each for each, _ in places}.values():
            mine = [at for at, (each, _) in enumerate(places) if each is store]
            opened = open_all(store, [places[at][1] for at in mine])
            for at, reader in zip(mine, opened, strict=True):
                found[at] = reader
        return found

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects under a folder."""
        store, folder = self._place(prefix)
        for info in store.list(folder):
            yield replace(info, path=prefix + info.path.removeprefix(folder))

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Yield path and size of the objects under a folder."""
        store, folder = self._place(prefix)
        for path, size_bytes in store.list_names(folder):
            yield prefix + path.removeprefix(folder), size_bytes

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Yield the folders directly below a folder, sorted."""
        store, folder = self._place(prefix)
        for path in store.list_folders(folder):
            yield prefix + path.removeprefix(folder)

    def open_writer(self, path: str) -> ObjectWriter:
        """Start a new object; under a base only if the caller listed or named that place."""
        found = _BASED.fullmatch(path)
        if found is not None:
            self._check_written(self._base(int(found.group(1)), path))
        store, inner = self._place(path)
        return store.open_writer(inner)

    def put(self, path: str, data: bytes) -> None:
        """Write a small object of the table's own."""
        self.inner.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object of the table's own, unless the name is taken."""
        self.inner.put_if_absent(path, data)

    def delete(self, path: str) -> None:
        """Delete an object of the table's own; what lies under a base belongs to another table."""
        self.inner.delete(path)

    def _place(self, path: str) -> tuple[Store, str]:
        found = _BASED.fullmatch(path)
        if found is None:
            return self.inner, path
        number, inner = int(found.group(1)), found.group(2)
        base = self._base(number, inner)
        store = self._opened.get(number)
        if store is None:
            store = self._opened[number] = self._open_base(base)
        return store, inner if base.is_dataset_root else inner.removeprefix("data/")

    def _base(self, number: int, path: str) -> BasePath:
        base = next((each for each in self.bases if each.id == number), None)
        if base is None:
            message = f"the table has no base path {number}, and the manifest places {path!r} there"
            raise FormatError(message)
        return base

    def _open_base(self, base: BasePath) -> Store:
        """Open a base to read it.  A local one is judged as it is opened: its links are followed once."""
        root = root_of(self.inner)
        uri = base_uri(base, root.uri)
        inside = below(uri, root.uri)
        if inside is not None:
            return PrefixStore(root, inside) if inside else root
        trust = self.trust.within(root.uri)
        store = open_store(without_manifest_store(uri), trust.options or _options_of(root))
        if isinstance(store, LocalStore):
            level = store.durability.without_commit
            store = replace(store, folders=trust.folders(), durability=level)
        place = store.real_root if isinstance(store, LocalStore) else uri
        if trust.covers(place) or (trust.places is None and is_next_to(uri, root.uri)):
            return store
        raise _untrusted(uri, "read")

    def open_in_base(self, number: int, path: str) -> tuple[Store, str]:
        """Return the store of a base path, and a path in it."""
        self._base(number, path)
        return self._place(f"@{number}/{path}")[0], path

    def open_folder(self, uri: str) -> Store:
        """Return the store of a folder outside of the table, if it may be read."""
        return self._open_base(BasePath(0, uri, is_dataset_root=True))

    def _check_written(self, base: BasePath) -> None:
        root = root_of(self.inner).uri
        uri = base_uri(base, root)
        if below(uri, root) is None and not self.trust.within(root).covers(uri):
            raise _untrusted(uri, "written")


def open_outside(store: Store, base_id: int, place: str) -> tuple[Store, str]:
    """Return the store, and the path in it, of a file that a table's bytes name outside of its folders.

    ``place`` lies in a base path, or, if ``base_id`` is 0, is an absolute URI.  Raises FormatError if
    there is no such base path or URI, UntrustedPathError for a place that may not be read.
    """
    if not isinstance(store, BasedStore):
        store = BasedStore(store, (), Trust.given(None, None))
    if base_id:
        return store.open_in_base(base_id, place)
    if not _ABSOLUTE.match(place):
        message = (
            f"a file outside of the table has the path {place[:200]!r}; it must be an absolute URI"
        )
        raise FormatError(message)
    folder, _, name = place.rpartition("/")
    return store.open_folder(f"{folder}/"), unquote(name)


def place_store(store: Store, manifest: Manifest, trust: Trust | None = None) -> Store:
    """Return the store through which a version's files are found, all of them.

    ``store`` is rooted at the table's folder, or at that of its branch; it is returned as it is for
    the tables, nearly all, that have neither base paths nor a branch, unless a list of trusted places
    was given, which versions that come later are to be read by.
    """
    if isinstance(store, BasedStore):
        if store.bases == manifest.base_paths and trust is None:
            return store
        trust = store.trust if trust is None else trust
        store = store.inner
    is_listed = trust is not None and trust.places is not None
    if not manifest.base_paths and manifest.branch is None and not is_listed:
        return store
    trust = Trust.given(None, None) if trust is None else trust
    home = _rooted(store, manifest.branch, trust)
    return (
        BasedStore(home, manifest.base_paths, trust) if manifest.base_paths or is_listed else home
    )


def root_of(store: Store) -> Store:
    """Return the store of the table's root, for a store of the table or of one of its branches."""
    if isinstance(store, BasedStore):
        return root_of(store.inner)
    return store.inner if isinstance(store, PrefixStore) else store


def trust_of(store: Store) -> Trust | None:
    """Return what was said to be trusted when the store was opened, None if nothing was."""
    return store.trust if isinstance(store, BasedStore) else None


def absolute_uri(store: Store) -> str:
    """Return a store's URI as others can open it: a path without regard to this process's folder."""
    location = parse_uri(store.uri) if "?" not in store.uri else None
    if location is not None and location.scheme == "file":
        return location.path
    return store.uri


def branch_store(root: Store, branch: str | None) -> Store:
    """Return the store of a branch's own folder; that of the main line is the root."""
    return root if branch is None else PrefixStore(root, branch_folder(branch))


def base_uri(base: BasePath, root: str) -> str:
    """Return where a base path lies.

    pylance writes a path as its user did, a relative one too, which means something in that
    user's folder only; one that the table's root ends with is taken for that root.
    """
    try:
        location = located(base.path)
    except ArgumentError as error:
        message = f"base path {base.id} is {base.path[:200]!r}, which is not a valid location"
        raise FormatError(message) from error
    if location.scheme != "file":
        if has_dot_segments(location.path):
            message = (
                f"base path {base.id} is {base.path[:200]!r}, whose dots may lead out of any place that"
                " is trusted; such a place is not opened"
            )
            raise UntrustedPathError(message)
        return base.path.rstrip("/")
    if not base.path.startswith(("/", "file:", "~")):
        first = base.path.rstrip("/").split("/tree/")[0]
        if f"/{plain_uri(root)}".endswith(f"/{first}"):
            return plain_uri(root) + base.path.rstrip("/").removeprefix(first)
    return location.path


def _options_of(root: Store) -> Mapping[str, str]:
    """Return the storage options of a table's own store, credentials among them."""
    inner: Store | None = getattr(root, "inner", None)
    if inner is not None:
        return _options_of(inner)
    return dict(getattr(root, "options", ()))


def _untrusted(uri: str, verb: str) -> UntrustedPathError:
    message = (
        f"the table names files in {uri!r}, outside of its own root, a place that may not be {verb};"
        f" if you trust it: dataset(..., trusted_bases=[{uri!r}]), or {TRUSTED_BASES}={uri}"
    )
    return UntrustedPathError(message)


def _rooted(store: Store, branch: str | None, trust: Trust) -> Store:
    """Return a branch's store as one below the table's root, however it was opened."""
    if branch is None or isinstance(store, PrefixStore):
        return store
    folder = f"/{branch_folder(branch)}"
    uri, mark, query = store.uri.partition("?") if "://" in store.uri else (store.uri, "", "")
    uri = uri.rstrip("/")
    if not uri.endswith(folder):
        return store
    root = f"{uri.removesuffix(folder)}{mark}{query}"
    return branch_store(kept_to(open_store(root, trust.options), trust), branch)
