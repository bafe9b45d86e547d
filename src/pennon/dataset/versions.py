"""Versions of a dataset by name: tags, branches, clones, and what changed between two of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar

from pennon.dataset.base import DatasetFacts
from pennon.errors import ArgumentError
from pennon.io import open_store
from pennon.scan.snapshot import Snapshot

if TYPE_CHECKING:
    from typing import Self

    from pennon.dataset.base_paths import DatasetBasePath
    from pennon.dataset.delta import DatasetDelta
    from pennon.dataset.lance_dataset import LanceDataset
    from pennon.table.refs.files import Branch as TableBranch
    from pennon.table.refs.files import Tag as TableTag

R = TypeVar("R")
Reference: TypeAlias = int | str | tuple[str | None, int | None] | None


class Tag(TypedDict):
    """A tag as pylance shows it; ``branch`` is None for the main line."""

    branch: str | None
    version: int
    created_at: datetime | None
    updated_at: datetime | None
    manifest_size: int
    metadata: dict[str, str]


class Branch(TypedDict):
    """A branch as pylance shows it; ``create_at`` is in seconds since 1970."""

    parent_branch: str | None
    branch_identifier: list[tuple[int, str]]
    parent_version: int
    create_at: int
    manifest_size: int
    metadata: dict[str, str]


OrderedTags: TypeAlias = list[tuple[str, Tag]]
OrderedBranches: TypeAlias = list[tuple[str, Branch]]


class Tags:
    """The tags of a table: names for versions, which clean-up keeps.

    A reference is a version of the branch that the dataset stands on, a tag's name, or a pair of a
    branch (None: the main line) and a version (None: its newest); None is the dataset's version.
    """

    def __init__(self, dataset: DatasetRefs) -> None:
        self._dataset = dataset

    def list(self) -> dict[str, Tag]:
        """Return all tags by name."""
        return dict(sorted((name, _show_tag(tag)) for name, tag in self._read().items()))

    def list_ordered(self, order: str | None = None) -> OrderedTags:
        """Return all tags by version, "desc" (the default) or "asc"."""
        tags = _ordered(self._read(), lambda tag: tag.version, order)
        return [(name, _show_tag(tag)) for name, tag in tags]

    def get_version(self, tag: str) -> int:
        """Return the version that a tag names; raises NotFoundError, a ValueError."""
        from pennon.table.base_paths import root_of  # noqa: PLC0415 - few programs name versions
        from pennon.table.refs.tags_and_branches import read_tag  # noqa: PLC0415 - as above

        return read_tag(root_of(self._dataset.snapshot.store), tag).version

    def create(self, tag: str, reference: Reference = None) -> None:
        """Name a version; raises RefExistsError, a ValueError, if the name is taken."""
        from pennon.ops.versions.refs import tag_version  # noqa: PLC0415 - few programs name versions

        tag_version(self._dataset.snapshot, tag, reference)

    def delete(self, tag: str) -> None:
        """Take the name away; raises NotFoundError."""
        from pennon.ops.versions.refs import drop_tag  # noqa: PLC0415 - few programs name versions

        drop_tag(self._dataset.snapshot, tag)

    def update(self, tag: str, reference: Reference = None) -> None:
        """Give the name to another version; raises NotFoundError."""
        from pennon.ops.versions.refs import move_tag  # noqa: PLC0415 - few programs name versions

        move_tag(self._dataset.snapshot, tag, reference)

    def replace_metadata(self, tag: str, metadata: Mapping[str, str]) -> None:
        """Replace all metadata of a tag; neither its version nor its times change."""
        from pennon.ops.versions.refs import describe_tag  # noqa: PLC0415 - few programs name versions

        describe_tag(self._dataset.snapshot, tag, metadata)

    def _read(self) -> dict[str, TableTag]:
        from pennon.table.base_paths import root_of  # noqa: PLC0415 - few programs name versions
        from pennon.table.refs.tags_and_branches import list_tags  # noqa: PLC0415 - as above

        return list_tags(root_of(self._dataset.snapshot.store))


class Branches:
    """The branches of a table; they are made by `LanceDataset.create_branch`."""

    def __init__(self, dataset: DatasetRefs) -> None:
        self._dataset = dataset

    def list(self) -> dict[str, Branch]:
        """Return all branches by name."""
        return dict(sorted((name, _show_branch(it)) for name, it in self._read().items()))

    def list_ordered(self, order: str | None = None) -> OrderedBranches:
        """Return all branches by the version that they left, "desc" (the default) or "asc"."""
        found = _ordered(self._read(), lambda branch: branch.parent_version, order)
        return [(name, _show_branch(branch)) for name, branch in found]

    def delete(self, branch: str) -> None:
        """Drop a branch and its own files; raises RefExistsError if something stands on it."""
        from pennon.ops.versions.branches import drop_branch  # noqa: PLC0415 - few programs have branches

        drop_branch(self._dataset.snapshot, branch)

    def replace_metadata(self, branch: str, metadata: Mapping[str, str]) -> None:
        """Replace all metadata of a branch."""
        from pennon.ops.versions.branches import describe_branch  # noqa: PLC0415 - as above

        describe_branch(self._dataset.snapshot, branch, metadata)

    def _read(self) -> dict[str, TableBranch]:
        from pennon.table.base_paths import root_of  # noqa: PLC0415 - as above
        from pennon.table.refs.tags_and_branches import list_branches  # noqa: PLC0415 - as above

        return list_branches(root_of(self._dataset.snapshot.store))


class DatasetRefs(DatasetFacts):
    """Tags, branches, clones and differences of a table."""

    _default_scan_options: dict[str, Any] | None

    @property
    def tags(self) -> Tags:
        """Return the table's tags."""
        return Tags(self)

    @property
    def branches(self) -> Branches:
        """Return the table's branches."""
        return Branches(self)

    @property
    def branch(self) -> str | None:
        """Return the branch that this dataset stands on, None for the main line."""
        return self._snapshot.manifest.branch

    def checkout_version(self, version: int | str | tuple[str | None, int | None]) -> Self:
        """Return the table at another version; caches are shared.

        A number means the same branch; a text is a tag; a pair is a branch (None: the main line) and
        a version (None: its newest).
        """
        from pennon.ops.versions.refs import open_point, resolve  # noqa: PLC0415 - see tags

        snapshot = open_point(self._snapshot, resolve(self._snapshot, version))
        return self._standing_at(snapshot)

    def create_branch(
        self,
        branch: str,
        reference: Reference = None,
        storage_options: dict[str, str] | None = None,
    ) -> Self:
        """Make a branch that leaves at a version, this one by default, and return it.

        Raises RefExistsError, InvalidRefError for a name that no branch can have, NotFoundError.
        """
        from pennon.ops.versions.branches import make_branch  # noqa: PLC0415 - few programs have branches

        return self._standing_at(make_branch(self._snapshot, branch, reference))

    def restore(self) -> None:
        """Make this version the newest of its branch again, as a new version."""
        from pennon.ops.versions.restore import restore  # noqa: PLC0415 - only writers need it

        manifest = restore(self._snapshot)
        self._snapshot = self._snapshot.at(manifest)

    def shallow_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Reference = None,
        storage_options: dict[str, str] | None = None,
        **options: Any,
    ) -> LanceDataset:
        """Make a version the first one of a new table, whose files stay in this one's place.

        The new table is good as long as this one keeps the version: tag it.  Whoever opens the clone
        later must trust this table's place (``trusted_bases`` of `pennon.dataset`).
        """
        from pennon.dataset.lance_dataset import LanceDataset  # noqa: PLC0415 - it is made of this class
        from pennon.ops.versions.branches import clone_shallow  # noqa: PLC0415 - few programs clone
        from pennon.table.base_paths import absolute_uri, root_of  # noqa: PLC0415 - as above

        stores = storage_options or self._storage_options
        clone_shallow(self._snapshot, reference, open_store(target_path, stores))
        options.setdefault("trusted_bases", [absolute_uri(root_of(self._snapshot.store))])
        return LanceDataset(target_path, storage_options=stores, **options)

    def deep_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Reference = None,
        storage_options: dict[str, str] | None = None,
        **options: Any,
    ) -> LanceDataset:
        """Copy a version, with all of its files, to a new table; it depends on nothing here."""
        from pennon.dataset.lance_dataset import LanceDataset  # noqa: PLC0415 - it is made of this class
        from pennon.ops.versions.deep_clone import copy_table  # noqa: PLC0415 - few programs clone

        stores = storage_options or self._storage_options
        copy_table(self._snapshot, reference, open_store(target_path, stores))
        return LanceDataset(target_path, storage_options=stores, **options)

    def base_paths(self) -> dict[int, DatasetBasePath]:
        """Return the places, beside its own, that this version may name files in, by id."""
        from pennon.dataset.base_paths import show_base  # noqa: PLC0415 - few tables have any

        return {base.id: show_base(base) for base in self._snapshot.manifest.base_paths}

    def add_bases(
        self,
        new_bases: Sequence[DatasetBasePath],
        transaction_properties: Mapping[str, str] | None = None,
    ) -> Self:
        """Add places for files, and turn this handle to the version made.

        Raises ArgumentError for an id, a name or a path that is taken.
        """
        from pennon.dataset.base_paths import to_base_path  # noqa: PLC0415 - few tables have any
        from pennon.ops.base_paths import add_bases  # noqa: PLC0415 - as above

        snapshot = self._snapshot
        bases = tuple(map(to_base_path, new_bases))
        manifest = add_bases(snapshot, bases, transaction_properties or {})
        self._snapshot = snapshot.at(manifest)
        return self

    def delta(
        self,
        compared_against: int | None = None,
        *,
        begin_version: int | None = None,
        end_version: int | None = None,
    ) -> DatasetDelta:
        """Return what changed after one version, up to and with another.

        Either ``compared_against``, a version older or newer than this one, or both
        ``begin_version`` and ``end_version``.
        """
        from pennon.dataset.delta import DatasetDelta  # noqa: PLC0415 - few programs compare

        return DatasetDelta.between(self, compared_against, begin_version, end_version)

    def _standing_at(self, snapshot: Snapshot) -> Self:
        return type(self).of_snapshot(  # type: ignore[no-any-return]
            snapshot.store.uri if snapshot.manifest.branch != self.branch else self._uri,
            snapshot,
            self._storage_options,
            self._default_scan_options,
        )


def _ordered(
    named: Mapping[str, R], version: Callable[[R], int], order: str | None
) -> list[tuple[str, R]]:
    """Return references by their versions, the newest first unless "asc" is asked for."""
    if order not in {None, "asc", "desc"}:
        message = f'order is "asc" or "desc", not {order!r}'
        raise ArgumentError(message)
    sign = 1 if order == "asc" else -1
    return sorted(named.items(), key=lambda item: (sign * version(item[1]), item[0]))


def _show_tag(tag: TableTag) -> Tag:
    return Tag(
        branch=tag.branch,
        version=tag.version,
        created_at=tag.created_at,
        updated_at=tag.updated_at,
        manifest_size=tag.manifest_size,
        metadata=dict(tag.metadata),
    )


def _show_branch(branch: TableBranch) -> Branch:
    return Branch(
        parent_branch=branch.parent_branch,
        branch_identifier=list(branch.identifier),
        parent_version=branch.parent_version,
        create_at=branch.created_at,
        manifest_size=branch.manifest_size,
        metadata=dict(branch.metadata),
    )
