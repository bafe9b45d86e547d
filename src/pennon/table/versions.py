"""The versions of a table: listing and reading them.

The newest version is found by listing ``_versions/``; the hint file is not asked, so a wrong or
missing one changes nothing.  In naming scheme V2 the first manifest of a sorted listing is the
newest, and the rest of the listing is not waited for.  While a table goes over from one scheme to the
other, names of both lie there, some versions under both; the names of scheme V2 count.  Only a store that lists nothing, a plain web
server, is probed (`pennon.table.probe_versions`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Final, Protocol, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange
from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import WORK, PoolSpec, beside, map_all
from pennon.core.units import DatasetVersion
from pennon.errors import (
    ArgumentError,
    Breadcrumb,
    CannotListError,
    FormatError,
    LanceError,
    NotFoundError,
)
from pennon.io.limits import FetchLimits
from pennon.io.store import Lists, Opens
from pennon.table.field_ids import with_distinct_ids
from pennon.table.fragments import Fragments
from pennon.table.manifest import Manifest, Summary
from pennon.table.manifest_wire import parse_manifest_file, summarize_manifest_file
from pennon.table.naming import (
    LATEST,
    MAX_VERSION,
    VERSIONS,
    Naming,
    detached_path,
    is_detached,
    parse_manifest_name,
)
from pennon.table.probe_versions import find_newest, naming_of

_V2_LENGTH: Final = len(Naming.V2.manifest_path(1))
"""Of the path of a manifest of scheme V2."""
_FIRST_PAGE = 1000
"""How many names are looked at for a mix of schemes: what object stores send at once."""

V = TypeVar("V", Manifest, Summary)


class Reads(Opens, Lists, Protocol):
    """The store operations that reading a table's versions uses."""

    @property
    def uri(self) -> str:
        """Return the root as the user wrote it."""

    @property
    def limits(self) -> FetchLimits | None:
        """Return how the store likes to be asked, None where to read is no request."""


@dataclass(frozen=True, slots=True)
class ManifestLocation:
    """The location of the manifest of one version.

    ``is_mixed`` tells that names of both schemes were seen beside it: a migration goes on, or broke
    off (`pennon.table.commit.migrate_naming`).  ``tag`` is what the store that listed it called its bytes.
    """

    version: DatasetVersion
    path: str
    naming: Naming
    size_bytes: int | None
    is_mixed: bool = False
    tag: str | None = None


_KNOWN: Final[WeakValueDictionary[Hashable, Manifest]] = WeakValueDictionary()
"""Manifests that somebody holds, by the place that they were read at, and the tag of their bytes if there is one."""


def latest_location(store: Reads, *, is_likely_new: bool = False) -> ManifestLocation:
    """Return where the newest version lies; raises NotFoundError if there is no table.

    If it is likely new, a far store is asked at once for all that says that there is none.
    """
    tags: dict[str, str] = {}
    if is_likely_new and store.limits is not None:
        requests = PoolSpec.requests(store.limits.concurrency)
        (first, names), copy = beside(
            lambda: _first_listed(store, tags), lambda: _copy_of_latest(store), requests
        )
        first = first or copy
    else:
        first, names = _first_listed(store, tags)
        first = first or _copy_of_latest(store)
    if first is None:
        from pennon.table.no_table import no_table  # noqa: PLC0415 - saves what errors need

        raise no_table(store.uri)
    if first.naming is Naming.V2:  # of this scheme the first one is the newest
        rest = islice(names, _FIRST_PAGE - 1)
        names = (each for each in rest if len(each[0]) != _V2_LENGTH)
    found = _newest([first, *_parsed(names)])
    tag = tags.get(found.path)
    return found if tag is None else replace(found, tag=tag)


_Names: TypeAlias = Iterator[tuple[str, int | None]]


def _first_listed(store: Reads, tags: dict[str, str]) -> tuple[ManifestLocation | None, _Names]:
    """Return the first manifest of the listing, and the names behind it."""
    try:
        names = store.list_names(VERSIONS) if store.limits is None else _tagged(store, tags)
        return next(_parsed(names), None), names
    except CannotListError:
        return _probe(store), iter(())


def _tagged(store: Reads, tags: dict[str, str]) -> _Names:
    """Yield path and size of what lies in ``_versions/``, and note the tags of all."""
    for each in store.list(VERSIONS):
        if each.tag is not None:
            tags[each.path] = each.tag
        yield each.path, each.size_bytes


def _copy_of_latest(store: Reads) -> ManifestLocation | None:
    """Return the location of the copy of the newest manifest; for tables whose other files are gone."""
    try:
        data = store.read_whole(LATEST)
    except NotFoundError:
        return None
    try:
        version = summarize_manifest_file(data).version
    except LanceError as error:
        raise error.located(Breadcrumb(file=LATEST)) from error.__cause__
    return ManifestLocation(version, LATEST, Naming.V1, int(data.size))


def list_locations(store: Reads) -> list[ManifestLocation]:
    """Return where all versions lie, oldest first; empty if there is no table."""
    return sorted(_merged(_list_manifests(store)), key=lambda location: location.version)


def find_location(store: Reads, version: int) -> ManifestLocation:
    """Return where a version lies; raises NotFoundError, which says what versions there are.

    A detached version is not looked for, but taken to be there.
    """
    if is_detached(version):
        return ManifestLocation(DatasetVersion(version), detached_path(version), Naming.V2, None)
    try:
        near = _find_near(store, version)
    except CannotListError:
        naming = naming_of(store, version)
        if naming is None:
            message = f"version {version} of {store.uri!r} does not exist"
            raise NotFoundError(message) from None
        return unlisted_location(naming, version)
    if near is not None:
        return near
    found = list_locations(store) or [latest_location(store)]
    for location in found:
        if location.version == version:
            return location
    message = (
        f"version {version} of {store.uri!r} does not exist; "
        f"there are {len(found)} versions, {found[0].version} to {found[-1].version}"
    )
    raise NotFoundError(message)


def _find_near(store: Reads, version: int) -> ManifestLocation | None:
    """Return where a version lies; None if there is none of that number.

    Of names of scheme V2 no other is looked at; all of scheme V1 are, for they tell whether names of both are there.
    """
    if not 0 < version <= MAX_VERSION:
        return None
    path = Naming.V2.manifest_path(version)
    names = list(store.list_names(VERSIONS))
    found = list(_parsed(each for each in names if len(each[0]) != _V2_LENGTH or each[0] == path))
    if any(each.naming is Naming.V1 for each in found):
        found = list(_parsed(iter(names)))
    return next((each for each in _merged(found) if each.version == version), None)


def latest_version(store: Reads) -> DatasetVersion:
    """Return the number of the newest version."""
    return latest_location(store).version


def read_manifest(store: Reads, version: int | None = None) -> Manifest:
    """Read the manifest of a version, or of the newest one.

    Raises NotFoundError, FormatError, or UnsupportedError for an unknown reader feature flag.
    """
    location = latest_location(store) if version is None else find_location(store, version)
    return read_manifest_at(store, location)


def given_manifest(data: bytes, version: int | None) -> Manifest:
    """Return the manifest that another process read, and sent as the bytes of its file.

    Raises FormatError for bytes that are none, ArgumentError for one of another version.
    """
    manifest = with_distinct_ids(parse_manifest_file(data))
    if version is not None and manifest.version != version:
        message = f"the serialized manifest is of version {manifest.version}, and version {version} was asked for"
        raise ArgumentError(message)
    return manifest


def read_newest_if_any(store: Reads, *, is_likely_new: bool = False) -> Manifest | None:
    """Read the manifest of the newest version; return None if there is no table.

    Raises as `read_manifest`; see `latest_location`.
    """
    try:
        return read_manifest_at(store, latest_location(store, is_likely_new=is_likely_new))
    except NotFoundError:
        return None


def read_manifest_at(store: Reads, location: ManifestLocation) -> Manifest:
    """Read the manifest at a known place, in one request; ids that stand twice are told apart.

    One that somebody holds is not parsed again if its bytes are the same as then, and not even read if its tag says so.
    """
    if location.tag is None:
        key: Hashable = store.uri, location.path
    else:
        key = store.identity(location.path, location.size_bytes), location.tag
    held = _KNOWN.get(key)
    if held is not None and location.tag is not None:
        return held
    found = _read_at(store, location, lambda data: _parse_unless_held(data, held))
    if found is not held:
        found = _KNOWN[key] = with_distinct_ids(found)
    return found


def _parse_unless_held(data: pa.Buffer, held: Manifest | None) -> Manifest:
    """Return what a manifest file says: the manifest that is held already, if it was read from the same bytes."""
    if held is None or not isinstance(held.fragments, Fragments):
        return parse_manifest_file(data)
    is_same = data.equals(pa.py_buffer(held.fragments.read_from()))
    return held if is_same else parse_manifest_file(data)


def read_next(store: Reads, location: ManifestLocation) -> tuple[ManifestLocation, Manifest] | None:
    """Return the version after one that was the newest a moment ago; None if it still is."""
    version = DatasetVersion(location.version + 1)
    path = location.naming.manifest_path(version)
    newer = replace(location, version=version, path=path, size_bytes=None)
    try:
        return newer, read_manifest_at(store, newer)
    except NotFoundError:
        return None


def _read_at(store: Reads, location: ManifestLocation, parse: Callable[[pa.Buffer], V]) -> V:
    data = _read_manifest_file(store, location)
    try:
        parsed = parse(data)
        _check_version(parsed.version, location)
    except LanceError as error:
        raise error.located(Breadcrumb(file=location.path)) from error.__cause__
    return parsed


def _read_manifest_file(store: Reads, location: ManifestLocation) -> pa.Buffer:
    """Return the bytes of a manifest, in one request.

    An old name that was listed a moment ago and is gone was taken away by a migration, or by a clean-up.
    """
    try:
        return _read_named(store, location)
    except NotFoundError:
        if location.naming is Naming.V2:
            raise
        with suppress(NotFoundError):
            return store.read_whole(Naming.V2.manifest_path(location.version))
        raise


def _read_named(store: Reads, location: ManifestLocation) -> pa.Buffer:
    if location.size_bytes is None or store.limits is None:
        # The manifest keeps these bytes; it must not keep the map of a file.
        return store.read_whole(location.path)
    reader = store.open(location.path, location.size_bytes)
    (data,) = reader.read([ByteRange(0, reader.size_bytes)])
    return data


def list_versions(store: Reads) -> list[Summary]:
    """Return all versions in a few numbers each, oldest first."""
    locations = list_locations(store) or [latest_location(store)]
    limits = store.limits
    pool_spec = WORK if limits is None else PoolSpec.reads(limits.concurrency)
    return map_all(lambda at: _read_at(store, at, summarize_manifest_file), locations, pool_spec)


def version_as_of(store: Reads, when: datetime) -> DatasetVersion:
    """Return the newest version committed at or before ``when`` (naive: local time)."""
    history = list_versions(store)
    moment = when.astimezone()
    known = [summary for summary in history if summary.timestamp <= moment]
    if not known:
        message = (
            f"{store.uri!r} has no version as of {when.isoformat()}; "
            f"its oldest is of {history[0].timestamp.isoformat()}"
        )
        raise NotFoundError(message)
    return max(known, key=lambda summary: (summary.timestamp, summary.version)).version


def _list_manifests(store: Lists) -> Iterator[ManifestLocation]:
    """Yield the attached manifests in the order of their names."""
    return _parsed(store.list_names(VERSIONS))


def _parsed(names: Iterable[tuple[str, int | None]]) -> Iterator[ManifestLocation]:
    """Yield those of names that are manifests, in their order; sizes may be unknown."""
    for path, size_bytes in names:
        parsed = parse_manifest_name(path) if path.count("/") == 1 else None
        if parsed is not None:
            naming, version = parsed
            yield ManifestLocation(version, path, naming, size_bytes)


def _probe(store: Reads) -> ManifestLocation | None:
    """Return the newest version of a table whose store lists nothing."""
    found = find_newest(store)
    return None if found is None else unlisted_location(*found)


def unlisted_location(naming: Naming, version: int) -> ManifestLocation:
    """Return where a version lies if it is there, and named by a scheme."""
    return ManifestLocation(DatasetVersion(version), naming.manifest_path(version), naming, None)


def _newest(locations: list[ManifestLocation]) -> ManifestLocation:
    return max(_merged(locations), key=lambda location: location.version)


def _merged(locations: Iterable[ManifestLocation]) -> list[ManifestLocation]:
    """Return one location of each version; of two names the one of scheme V2 counts."""
    found = list(locations)
    schemes = {location.naming for location in found}
    if len(schemes) < 2:
        return found
    found.sort(key=lambda location: location.naming is Naming.V2)
    return [replace(at, is_mixed=True) for at in {at.version: at for at in found}.values()]


def _check_version(version: int, location: ManifestLocation) -> None:
    if version != location.version:
        message = f"the manifest of version {location.version} says that it is {version}"
        raise FormatError(message)
