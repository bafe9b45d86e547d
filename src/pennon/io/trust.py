"""The places outside of a table that may be read or written.

A manifest is untrusted bytes, and so are the links in a table's folder.  One rule for both:

- a place that the caller named in this process, for this table, is trusted: a base path that he gave
  it, the source of a clone;
- without a list, a local table may name local places, and a table in a bucket those of the same
  bucket, which are read with the same credentials, but never written to;
- a list (``trusted_bases=[...]`` of `pennon.dataset`, the environment's ``PENNON_TRUSTED_BASES``, both
  together) says which places may be read, instead.  Another scheme or bucket needs one, ``*`` trusts
  all, and an empty list nothing at all: not even what was named before for another handle.

A local place is judged by where its links lead.  A remote one has no segments ``..``, in no encoding.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final

from pennon.core.fast_dataclass import dataclass
from pennon.io.fenced import real_folders
from pennon.io.local import LocalStore
from pennon.io.paths import TRUSTED_BASES, Location, has_dot_segments, parse_uri
from pennon.io.store import Store

ALL: Final = "*"
_WEB: Final = {"http", "https"}
"""A host, other than a bucket, belongs to many."""
_SAME: Final = {"s3a": "s3", "abfs": "abfss"}
_MANIFEST_STORE: Final = re.compile(r"^([A-Za-z0-9.\-]+)\+[A-Za-z0-9.\-]+(?=:/)")
_named: dict[str, set[str]] = {}
"""By a table's root: the places that were named for it in this process."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The places outside of a table's root that may be read, and how they are opened.

    ``places``: the list, None if there is none.  ``named``: what the caller of a handle named.
    """

    places: tuple[str, ...] | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    named: tuple[str, ...] = ()

    @classmethod
    def given(
        cls, places: Sequence[str | os.PathLike[str]] | None, options: Mapping[str, str] | None
    ) -> Trust:
        """Return what the caller and the environment trust."""
        environment = os.environ.get(TRUSTED_BASES)
        if places is None and environment is None:
            return cls(None, dict(options or {}))
        listed = [os.fspath(place) for place in places or ()]
        return cls((*listed, *_split_environment(environment or "")), dict(options or {}))

    @property
    def is_strict(self) -> bool:
        """Return whether nothing is trusted but what the handle's caller named."""
        return self.places is not None and not self.places

    def naming(self, places: Iterable[str]) -> Trust:
        """Return the same trust, and that in places which the caller named."""
        return replace(self, named=tuple(dict.fromkeys((*self.named, *places))))

    def within(self, root: str) -> Trust:
        """Return the same trust, and that in what this process named for the table at a root."""
        known = () if self.is_strict else _named.get(plain_uri(root), ())
        return self.naming(sorted(known)) if known else self

    def covers(self, uri: str) -> bool:
        """Return whether a place was listed or named, or lies below such a one."""
        trusted = (*self.named, *(self.places or ()))
        return any(place == ALL or _is_below(uri, place) for place in trusted)

    def folders(self) -> tuple[str, ...] | None:
        """Return the real local folders that were listed or named, None where any may be read."""
        if self.places is None or ALL in self.places:
            return None
        local = [located(place) for place in (*self.named, *self.places)]
        return real_folders(each.path for each in local if each.scheme == "file")


def remember_named(root: str, places: Iterable[str]) -> None:
    """Note that a caller named places for the table at a root, in this process."""
    _named.setdefault(plain_uri(root), set()).update(places)


def is_next_to(uri: str, root: str) -> bool:
    """Return whether a place is local like the root, or in the root's bucket."""
    place, home = located(uri), located(root)
    if place.scheme in _WEB:
        return False
    return (place.scheme, place.authority) == (home.scheme, home.authority)


def below(uri: str, root: str) -> str | None:
    """Return the path from a root to a place below it: empty for the root itself, None outside."""
    mine, top = plain_uri(uri), plain_uri(root)
    if mine == top:
        return ""
    return mine.removeprefix(f"{top}/") if mine.startswith(f"{top}/") else None


def plain_uri(uri: str) -> str:
    """Return a URI in one form, without what says how its manifests are kept."""
    location = located(uri)
    if location.scheme == "file":
        return location.path.rstrip("/")
    return f"{location.scheme}://{location.authority}/{location.path}".rstrip("/")


def without_manifest_store(uri: str) -> str:
    """Return a URI without what says how its manifests are kept."""
    return _MANIFEST_STORE.sub(r"\1", uri.partition("?")[0]) if "://" in uri else uri


def located(uri: str) -> Location:
    """Take a URI apart, without what says how its manifests are kept."""
    location = parse_uri(without_manifest_store(uri))
    return replace(location, scheme=_SAME.get(location.scheme, location.scheme))


def kept_to(store: Store, trust: Trust) -> Store:
    """Return a table's store whose links lead to trusted places only, if there is a list of them."""
    if isinstance(store, LocalStore):
        folders = trust.folders()
        mine = None if folders is None else (store.real_root, *folders)
        return replace(store, folders=mine)
    forwarding: Any = store
    inner: Store | None = getattr(forwarding, "inner", None)
    if inner is None or not hasattr(forwarding, "__dataclass_fields__"):
        return store
    kept: Store = replace(forwarding, inner=kept_to(inner, trust))
    return kept


def _is_below(uri: str, place: str) -> bool:
    """Return whether one place is another or lies below it; local ones by where their links lead."""
    mine, top = located(uri), located(place)
    if mine.scheme == top.scheme == "file":
        real, folder = os.path.realpath(mine.path), os.path.realpath(top.path)
        return real == folder or real.startswith(folder.rstrip("/") + "/")
    if has_dot_segments(mine.path) or has_dot_segments(top.path):
        return False
    return below(uri, place) is not None


def _split_environment(value: str) -> list[str]:
    """Split like PATH, but not at the colon of ``scheme://``."""
    pieces = re.split(re.escape(os.pathsep) + r"(?!//)", value)
    return [piece for piece in pieces if piece]
