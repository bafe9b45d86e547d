"""Versions by reference: a number, a tag, or a place on a branch; and what names them.

A number means the branch that the handle stands on.  ``(branch, version)`` names both: None or
``"main"`` is the main line, and no version its newest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from pennon.errors import NotFoundError, RefExistsError, RetryableConflict
from pennon.io.store import Store
from pennon.ops.held import held
from pennon.scan.snapshot import Snapshot
from pennon.table.base_paths import branch_store, place_store, root_of, trust_of
from pennon.table.refs.files import KEEPS_LATER, Tag
from pennon.table.refs.tags_and_branches import (
    MAIN,
    check_new_tag_name,
    create_tag,
    list_tags,
    read_branch,
    read_tag,
    replace_tag,
    tag_path,
)
from pennon.table.versions import find_location, latest_location, read_manifest

Reference: TypeAlias = int | str | tuple[str | None, int | None] | None


@dataclass(frozen=True, slots=True)
class Point:
    """A version of a branch; None stands for the main line, and for the newest version."""

    branch: str | None
    version: int | None

    def __str__(self) -> str:
        """Return e.g. ``main:3``."""
        return f"{self.branch or MAIN}:{'latest' if self.version is None else self.version}"


def resolve(snapshot: Snapshot, reference: Reference) -> Point:
    """Return the version that is meant; None is the snapshot's own.

    Raises NotFoundError for a tag that does not exist, TypeError for what is no reference.
    """
    here = snapshot.manifest
    if reference is None:
        return Point(here.branch, here.version)
    if isinstance(reference, str):
        tag = read_tag(root_of(snapshot.store), reference)
        return Point(_branch(tag.branch), tag.version)
    if isinstance(reference, int) and not isinstance(reference, bool):
        return Point(here.branch, int(reference))
    if isinstance(reference, tuple) and len(reference) == 2:
        branch, version = reference
        return Point(_branch(branch), None if version is None else int(version))
    message = (
        "a version is a number, a tag's name or a pair of branch and number,"
        f" got {type(reference).__name__}"
    )
    raise TypeError(message)


def _branch(name: str | None) -> str | None:
    return None if name == MAIN else name


def open_point(snapshot: Snapshot, point: Point) -> Snapshot:
    """Open a version of the same table; memory is shared.  Raises NotFoundError."""
    here = snapshot.manifest
    if point == Point(here.branch, here.version):
        return snapshot
    store: Store = snapshot.store
    if point.branch != here.branch:
        store = _store_of(store, point.branch)
    manifest = read_manifest(store, point.version)
    trust = trust_of(snapshot.store)
    return Snapshot(place_store(store, manifest, trust), manifest, snapshot.session)


def open_version(snapshot: Snapshot, reference: Reference) -> Snapshot:
    """Open the version of the same table that is meant; memory is shared.

    Raises NotFoundError for a tag or a version that does not exist, TypeError for what is no reference.
    """
    return open_point(snapshot, resolve(snapshot, reference))


def _store_of(store: Store, branch: str | None) -> Store:
    """Return the store of a branch that exists."""
    root = root_of(store)
    if branch is not None:
        read_branch(root, branch)
    return branch_store(root, branch)


# Tags


def tags_of(snapshot: Snapshot) -> dict[str, Tag]:
    """Return all tags of the table by name."""
    return list_tags(root_of(snapshot.store))


def tagged_version(snapshot: Snapshot, name: str) -> int:
    """Return the version that a tag names.  Raises NotFoundError."""
    return read_tag(root_of(snapshot.store), name).version


def tag_version(snapshot: Snapshot, name: str, reference: Reference) -> None:
    """Give a version a name.

    Raises RefExistsError, NotFoundError, InvalidRefError, and RetryableConflict if a clean-up is removing the version.
    """
    check_new_tag_name(name)
    _create(snapshot, name, _tag_of(snapshot, reference))


def move_tag(snapshot: Snapshot, name: str, reference: Reference) -> None:
    """Give a tag that exists to another version; when it was made and its metadata stay.

    Raises NotFoundError, and RetryableConflict if a clean-up is removing the version.
    """
    root = root_of(snapshot.store)
    old = read_tag(root, name)
    new = replace(_tag_of(snapshot, reference), created_at=old.created_at, metadata=old.metadata)
    if old.keeps_later and old.branch == new.branch and old.version <= new.version:
        replace_tag(root, name, _measured(snapshot, new))
        return
    _store_held(
        snapshot,
        new,
        lambda tag: replace_tag(root, name, tag),
        lambda: replace_tag(root, name, old),
    )


def hold_versions(snapshot: Snapshot, name: str, reference: Reference) -> None:
    """Let a tag keep a version and all later ones from clean-ups; a tag that does so already is moved.

    Raises RefExistsError if the tag is there for something else, NotFoundError, InvalidRefError, and
    RetryableConflict if a clean-up is removing the version, or a later one.
    """
    root = root_of(snapshot.store)
    known = list_tags(root).get(name)
    if known is not None and not known.keeps_later:
        message = f"the tag {name!r} names version {known.version}, and keeps no others: take another name"
        raise RefExistsError(message)
    if known is not None:
        move_tag(snapshot, name, reference)
        return
    check_new_tag_name(name)
    _create(snapshot, name, replace(_tag_of(snapshot, reference), metadata=dict([KEEPS_LATER])))


def describe_tag(snapshot: Snapshot, name: str, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a tag; raises TypeError for what is no text."""
    root = root_of(snapshot.store)
    replace_tag(root, name, replace(read_tag(root, name), metadata=check_texts(metadata)))


def check_texts(metadata: Mapping[Any, Any]) -> dict[str, str]:
    """Return the metadata of a tag or a branch; raises TypeError for what is no text."""
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            message = f"metadata is text, but there is {key!r}: {value!r}"
            raise TypeError(message)
    return dict(metadata)


def drop_tag(snapshot: Snapshot, name: str) -> None:
    """Take a name from a version.  Raises NotFoundError."""
    root = root_of(snapshot.store)
    read_tag(root, name)
    root.delete(tag_path(name))


def _create(snapshot: Snapshot, name: str, tag: Tag) -> None:
    root = root_of(snapshot.store)
    _store_held(
        snapshot, tag, lambda tag: create_tag(root, name, tag), lambda: root.delete(tag_path(name))
    )


def _tag_of(snapshot: Snapshot, reference: Reference) -> Tag:
    """Return a tag of the version that is meant, which may not exist."""
    point = resolve(snapshot, reference)
    number = measure(snapshot, point)[0] if point.version is None else point.version
    return Tag(point.branch, number)


def _store_held(
    snapshot: Snapshot, tag: Tag, store: Callable[[Tag], None], undo: Callable[[], None]
) -> None:
    """Store a tag of a version that no clean-up removes meanwhile; raises NotFoundError if there is none."""
    line = branch_store(root_of(snapshot.store), tag.branch)
    with held(line, tag.version, with_later=tag.keeps_later) as hold:
        store(_measured(snapshot, tag))
        if not hold.lasts():
            undo()
            raise held_too_long(snapshot, tag.branch, tag.version)


def _measured(snapshot: Snapshot, tag: Tag) -> Tag:
    """Return a tag with the size of its version's manifest, updated now; raises NotFoundError."""
    _, size_bytes = measure(snapshot, Point(tag.branch, tag.version))
    now = datetime.now(UTC)
    return replace(tag, manifest_size=size_bytes, created_at=tag.created_at or now, updated_at=now)


def held_too_long(snapshot: Snapshot, branch: str | None, version: int) -> RetryableConflict:
    """Return the error for a version that was held for so long that the next clean-up may remove it."""
    message = (
        f"a clean-up deleted what held version {Point(branch, version)} of {root_of(snapshot.store).uri!r}, "
        "as it does after a week, or with delete_unverified; nothing was named, try again"
    )
    return RetryableConflict(message)


def measure(snapshot: Snapshot, point: Point) -> tuple[int, int]:
    """Return the number of a version of the table, and the size of its manifest in bytes.

    Raises NotFoundError if there is no such version.
    """
    store = branch_store(root_of(snapshot.store), point.branch)
    try:
        number = point.version
        at = latest_location(store) if number is None else find_location(store, number)
    except NotFoundError:
        message = f"version {point} does not exist"
        raise NotFoundError(message) from None
    size_bytes = at.size_bytes
    return at.version, store.open(at.path).size_bytes if size_bytes is None else size_bytes
