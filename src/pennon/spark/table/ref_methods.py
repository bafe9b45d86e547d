"""The tags and the branches of a `pennon.spark.LanceTable`; Delta's table has neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from pennon.ops.versions.branches import branches_of, describe_branch, drop_branch, make_branch
from pennon.ops.versions.refs import (
    Reference,
    describe_tag,
    drop_tag,
    move_tag,
    tag_version,
    tags_of,
)
from pennon.spark.table.handle import TableHandle
from pennon.table.base_paths import branch_store, root_of
from pennon.table.refs.tags_and_branches import MAIN, read_branch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TAGS: Final = (
    "tag string, branch string, version bigint, created_at timestamp, updated_at timestamp, "
    "metadata map<string, string>"
)
_BRANCHES: Final = (
    "branch string, parent_branch string, parent_version bigint, created_at timestamp, "
    "metadata map<string, string>"
)

Table = TypeVar("Table", bound=TableHandle)


@dataclass(frozen=True, slots=True)
class TableTags:
    """The tags of a table: names for versions, which `LanceTable.vacuum` keeps.

    A reference is a version of the branch that the table stands on, a tag's name, or a pair of a branch
    (None: the main line) and a version (None: its newest); None is the newest version.

    >>> table.tags.create("first")
    >>> [row[0] for row in table.tags.toDF().collect()]
    ['first']
    """

    table: TableHandle

    def toDF(self) -> DataFrame:
        """Return all tags, by name."""
        rows = [
            (
                name,
                tag.branch or MAIN,
                tag.version,
                tag.created_at,
                tag.updated_at,
                dict(tag.metadata),
            )
            for name, tag in sorted(tags_of(self.table.snapshot()).items())
        ]
        return self.table.spark.createDataFrame(rows, _TAGS)

    def create(self, tag: str, reference: Reference = None) -> None:
        """Name a version; raises RefExistsError if the name is taken, NotFoundError."""
        tag_version(self.table.snapshot(), tag, reference)

    def update(self, tag: str, reference: Reference = None) -> None:
        """Give the name to another version; raises NotFoundError."""
        move_tag(self.table.snapshot(), tag, reference)

    def delete(self, tag: str) -> None:
        """Take the name away; raises NotFoundError."""
        drop_tag(self.table.snapshot(), tag)

    def replaceMetadata(self, tag: str, metadata: Mapping[str, str]) -> None:
        """Replace all metadata of a tag; raises NotFoundError."""
        describe_tag(self.table.snapshot(), tag, metadata)


@dataclass(frozen=True, slots=True)
class TableBranches(Generic[Table]):
    """The branches of a table: lines of versions that left it at one of its versions.

    >>> _ = table.branches.create("trial")
    >>> table.branches.checkout("trial").count()
    3
    """

    table: Table

    def toDF(self) -> DataFrame:
        """Return all branches, by name."""
        rows = [
            (
                name,
                branch.parent_branch or MAIN,
                branch.parent_version,
                datetime.fromtimestamp(branch.created_at, UTC),
                dict(branch.metadata),
            )
            for name, branch in sorted(branches_of(self.table.snapshot()).items())
        ]
        return self.table.spark.createDataFrame(rows, _BRANCHES)

    def create(self, branch: str, reference: Reference = None) -> Table:
        """Make a branch that leaves at a version (see `TableTags`), and return the table on it.

        Raises RefExistsError if the name is taken, NotFoundError.
        """
        make_branch(self.table.snapshot(), branch, reference)
        return self.checkout(branch)

    def checkout(self, branch: str) -> Table:
        """Return the table on a branch, or for "main" on the main line; raises NotFoundError."""
        store = root_of(self.table.snapshot().store)
        if branch != MAIN:
            read_branch(store, branch)
            store = branch_store(store, branch)
        return self.table.forPath(self.table.spark, store.uri, self.table.storage_options)

    def delete(self, branch: str) -> None:
        """Drop a branch and its own files; raises RefExistsError if something stands on it."""
        drop_branch(self.table.snapshot(), branch)

    def replaceMetadata(self, branch: str, metadata: Mapping[str, str]) -> None:
        """Replace all metadata of a branch; raises NotFoundError."""
        describe_branch(self.table.snapshot(), branch, metadata)


class RefMethods:
    """Names for versions."""

    __slots__ = ()

    @property
    def tags(self: TableHandle) -> TableTags:
        """Return the table's tags.

        >>> table.tags.create("first")
        >>> _ = table.delete("value = 1")
        >>> table.read(tag="first").count()
        3
        """
        return TableTags(self)

    @property
    def branches(self: Table) -> TableBranches[Table]:  # noqa: PYI019 - the table, not this part of it
        """Return the table's branches.

        >>> trial = table.branches.create("trial")
        >>> _ = trial.delete("value = 1")
        >>> trial.count(), table.count()
        (2, 3)
        """
        return TableBranches(self)
