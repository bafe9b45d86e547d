"""The names of versions: tags, and branches with the versions that they left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, TypedDict, TypeVar

from pennon import ops
from pennon.dataset.base import DatasetBase
from pennon.errors import ArgumentError

if TYPE_CHECKING:
    from pennon.table.refs.files import Branch as TableBranch
    from pennon.table.refs.files import Tag as TableTag

R = TypeVar("R")
Reference: TypeAlias = int | str | tuple[str | None, int | None] | None


class Tag(TypedDict):
    """An entry of `Tags.list`; ``branch`` is None for the main line.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds.tags.create("first")
    >>> ds.tags.list()["first"]["version"]
    1
    """

    branch: str | None
    version: int
    created_at: datetime | None
    updated_at: datetime | None
    manifest_size: int
    metadata: dict[str, str]


class Branch(TypedDict):
    """An entry of `Branches.list`; ``create_at`` is in seconds since 1970.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> _ = ds.create_branch("trial")
    >>> ds.branches.list()["trial"]["parent_version"]
    1
    """

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

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds.tags.create("first")
    >>> ds.tags.get_version("first"), list(ds.tags.list())
    (1, ['first'])
    """

    def __init__(self, dataset: DatasetBase) -> None:
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
        return ops.tagged_version(self._dataset.snapshot, tag)

    def create(self, tag: str, reference: Reference = None) -> None:
        """Name a version.

        Raises RefExistsError, a ValueError, if the name is taken, NotFoundError if there is no such version,
        and RetryableConflict if a clean-up is removing it.
        """
        ops.tag_version(self._dataset.snapshot, tag, reference)

    def delete(self, tag: str) -> None:
        """Take the name away; raises NotFoundError."""
        ops.drop_tag(self._dataset.snapshot, tag)

    def update(self, tag: str, reference: Reference = None) -> None:
        """Give the name to another version; raises NotFoundError, and RetryableConflict as `create` does."""
        ops.move_tag(self._dataset.snapshot, tag, reference)

    def replace_metadata(self, tag: str, metadata: Mapping[str, str]) -> None:
        """Replace all metadata of a tag; neither its version nor its times change."""
        ops.describe_tag(self._dataset.snapshot, tag, metadata)

    def _read(self) -> dict[str, TableTag]:
        return ops.tags_of(self._dataset.snapshot)


class Branches:
    """The branches of a table; they are made by `LanceDataset.create_branch`.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> _ = ds.create_branch("trial")
    >>> ds.branches.delete("trial")
    >>> ds.branches.list()
    {}
    """

    def __init__(self, dataset: DatasetBase) -> None:
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
        ops.drop_branch(self._dataset.snapshot, branch)

    def replace_metadata(self, branch: str, metadata: Mapping[str, str]) -> None:
        """Replace all metadata of a branch."""
        ops.describe_branch(self._dataset.snapshot, branch, metadata)

    def _read(self) -> dict[str, TableBranch]:
        return ops.branches_of(self._dataset.snapshot)


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
