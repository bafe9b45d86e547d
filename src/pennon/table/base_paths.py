"""Base paths: files of a table that lie in another place, and who allows to read them.

The versions of a branch, and of a shallow clone, name files that they did not write.  A data file
or deletion file with a ``base_id`` lies below that base path of the manifest.  In Pennon such a file
has the store path ``@{base_id}/data/x.lance``, and a `BasedStore` knows where that is; all else is a
table's own.

A manifest is untrusted bytes, so a base is read without question only inside of the table's own
root, where all its branches are.  Any other must be trusted by the caller: ``trusted_bases=[...]``
of `pennon.dataset`, or the environment's ``PENNON_TRUSTED_BASES`` (separated like ``PATH``; ``*``
trusts all).

Source: table.proto; commit-and-faults reference T26; ledger F-341.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError, FormatError, UntrustedPathError
from pennon.io import open_store
from pennon.io.forwarding_store import ForwardingStore
from pennon.io.paths import Location, parse_uri
from pennon.io.prefix_store import PrefixStore
from pennon.io.store import ObjectInfo, Store
from pennon.table.fragment import BasePath
from pennon.table.manifest import Manifest
from pennon.table.refs.tags_and_branches import branch_folder

ENVIRONMENT = "PENNON_TRUSTED_BASES"
_BASED = re.compile(r"@(\d+)/(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Trust:
    """Which places outside of a table's root may be read, and how they are opened."""

    places: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def given(
        cls, places: Sequence[str | os.PathLike[str]] | None, options: Mapping[str, str] | None
    ) -> Trust:
        """Return what the caller and the environment trust."""
        named = [os.fspath(place) for place in places or ()]
        environment = os.environ.get(ENVIRONMENT, "")
        return cls((*named, *_split_environment(environment)), dict(options or {}))

    def covers(self, uri: str) -> bool:
        """Tell whether a place is one of the trusted ones, or below one."""
        return any(place == "*" or below(uri, place) is not None for place in self.places)


@dataclass(frozen=True, slots=True)
class BasedStore(ForwardingStore):
    """A table's own folder, ``inner``, and its base paths under ``@{id}/``."""

    inner: Store
    bases: tuple[BasePath, ...]
    trust: Trust = field(default_factory=Trust)
    _opened: dict[int, Store] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[BasedStore], tuple[Store, tuple[BasePath, ...], Trust]]:
        """Pickle without the stores opened so far."""
        return BasedStore, (self.inner, self.bases, self.trust)

    def identity(self, path: str, size_bytes: int | None = None) -> Hashable:
        """Return what tells the bytes of an object from all others."""
        store, inner = self._place(path)
        found = store.identity(inner, size_bytes)
        return found if store is self.inner else (store.uri, found)

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
        base = next((each for each in self.bases if each.id == number), None)
        if base is None:
            message = f"there is no base path {number}, in which {inner!r} is said to lie"
            raise FormatError(message)
        store = self._opened.get(number)
        if store is None:
            store = self._opened[number] = self._open_base(base)
        return store, inner if base.is_dataset_root else inner.removeprefix("data/")

    def _open_base(self, base: BasePath) -> Store:
        root = root_of(self.inner)
        uri = base_uri(base, root.uri)
        inside = below(uri, root.uri)
        if inside is not None:
            return PrefixStore(root, inside) if inside else root
        if not self.trust.covers(uri):
            message = (
                f"the table names files in {uri!r}, outside of its own root; to read them, trust that"
                f" place: dataset(..., trusted_bases=[{uri!r}]), or {ENVIRONMENT}={uri}"
            )
            raise UntrustedPathError(message)
        return open_store(uri, self.trust.options)


def place_store(store: Store, manifest: Manifest, trust: Trust | None = None) -> Store:
    """Return the store through which a version's files are found, all of them.

    ``store`` is rooted at the table's folder, or at that of its branch; it is returned as it is for
    the tables, nearly all, that have neither base paths nor a branch.
    """
    if isinstance(store, BasedStore):
        if store.bases == manifest.base_paths and trust is None:
            return store
        trust = store.trust if trust is None else trust
        store = store.inner
    if not manifest.base_paths and manifest.branch is None:
        return store
    trust = Trust.given(None, None) if trust is None else trust
    home = _rooted(store, manifest.branch, trust)
    return BasedStore(home, manifest.base_paths, trust) if manifest.base_paths else home


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
        location = _parsed(base.path)
    except ArgumentError as error:
        message = f"base path {base.id} is {base.path[:200]!r}, which is no place"
        raise FormatError(message) from error
    if location.scheme != "file":
        return base.path.rstrip("/")
    if not base.path.startswith(("/", "file:", "~")):
        first = base.path.rstrip("/").split("/tree/")[0]
        if f"/{_plain(root)}".endswith(f"/{first}"):
            return _plain(root) + base.path.rstrip("/").removeprefix(first)
    return location.path


def below(uri: str, root: str) -> str | None:
    """Return the path from a root to a place below it: empty for the root itself, None outside."""
    mine, top = _plain(uri), _plain(root)
    if mine == top:
        return ""
    return mine.removeprefix(f"{top}/") if mine.startswith(f"{top}/") else None


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
    return branch_store(open_store(root, trust.options), branch)


def _plain(uri: str) -> str:
    """Return a URI in one form, without what says how its manifests are kept."""
    location = _parsed(uri)
    if location.scheme == "file":
        return location.path.rstrip("/")
    scheme = location.scheme.partition("+")[0]
    return f"{scheme}://{location.authority}/{location.path}".rstrip("/")


def _split_environment(value: str) -> list[str]:
    """Split like PATH, but not at the colon of ``scheme://``."""
    pieces = re.split(re.escape(os.pathsep) + r"(?!//)", value)
    return [piece for piece in pieces if piece]


def _parsed(uri: str) -> Location:
    """Take a URI apart, without what says how its manifests are kept."""
    return parse_uri(uri.partition("?")[0] if "://" in uri else uri)
