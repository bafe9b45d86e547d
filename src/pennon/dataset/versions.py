"""The versions of a table: looking at them, going to one, naming and cloning them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

import pyarrow as pa

from pennon import ops
from pennon.compat.option_types import OpenKeywords
from pennon.dataset.base import DatasetBase
from pennon.dataset.metadata import DatasetBasePath
from pennon.dataset.refs import Branches, Reference, Tags
from pennon.io import open_store
from pennon.table.manifest import Summary
from pennon.table.versions import list_locations, list_versions, read_manifest

if TYPE_CHECKING:
    from pennon.dataset.delta import DatasetDelta


class Version(TypedDict):
    """One version: its number, its local time, and a summary of its manifest as text.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> sorted(ds.versions()[0])
    ['metadata', 'timestamp', 'version']
    """

    version: int
    timestamp: datetime
    metadata: dict[str, str]


class VersionRef(TypedDict):
    """The number of a version.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds.version_refs()
    [{'version': 1}]
    """

    version: int


class DatasetVersions(DatasetBase):
    """The methods of `LanceDataset` about versions: tags, branches, clones, differences."""

    def versions(self) -> list[Version]:
        """Return all versions of the table, oldest first.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.insert(pa.table({"id": [4]}))
        >>> [each["version"] for each in ds.versions()]
        [1, 2]
        """
        return [_describe(summary) for summary in list_versions(self._snapshot.store)]

    def version_refs(self) -> list[VersionRef]:
        """Return the numbers of all versions, oldest first; no manifest is read.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.version_refs()
        [{'version': 1}]
        """
        return [VersionRef(version=at.version) for at in list_locations(self._snapshot.store)]

    def get_version(self) -> Version:
        """Return this version's number, time and summary.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.get_version()["metadata"]["total_rows"]
        '3'
        """
        return _describe(self._snapshot.manifest.summary)

    def checkout_latest(self) -> None:
        """Turn this handle to the newest version.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> _ = pennon.write_dataset(pa.table({"id": [4]}), uri, mode="append")
        >>> ds.checkout_latest()
        >>> ds.version, ds.count_rows()
        (2, 4)
        """
        self._turn_to(read_manifest(self._snapshot.store))

    @property
    def tags(self) -> Tags:
        """Return the table's tags.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.tags.create("first")
        >>> ds.checkout_version("first").version
        1
        """
        return Tags(self)

    @property
    def branches(self) -> Branches:
        """Return the table's branches.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> _ = ds.create_branch("trial")
        >>> list(ds.branches.list())
        ['trial']
        """
        return Branches(self)

    @property
    def branch(self) -> str | None:
        """Return the branch that this dataset is on, None for the main line.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.create_branch("trial").branch
        'trial'
        """
        return self._snapshot.manifest.branch

    def checkout_version(self, version: int | str | tuple[str | None, int | None]) -> Self:
        """Return the table at another version; caches are shared.

        A number means the same branch; a text is a tag; a pair is a branch (None: the main line) and
        a version (None: its newest).

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.insert(pa.table({"id": [4]}))
        >>> ds.checkout_version(1).count_rows()
        3
        """
        return self._at_snapshot(ops.open_version(self._snapshot, version))

    def create_branch(
        self,
        branch: str,
        reference: Reference = None,
        storage_options: dict[str, str] | None = None,
    ) -> Self:
        """Make a branch that leaves at a version, this one by default, and return it.

        Raises RefExistsError, InvalidRefError for a name that no branch can have, NotFoundError, and
        RetryableConflict if a clean-up is removing the version.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> trial = ds.create_branch("trial")
        >>> trial.insert(pa.table({"id": [4]}))
        >>> trial.count_rows(), ds.count_rows()
        (4, 3)
        """
        return self._at_snapshot(ops.make_branch(self._snapshot, branch, reference))

    def restore(self, *version: Any) -> None:
        """Make this version the newest of its branch again, as a new version.

        Another version is checked out first: ``dataset.checkout_version(3).restore()``.  Raises NotFoundError if
        a clean-up has removed the version, and RetryableConflict if one is removing it.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> _ = ds.delete("id > 1")
        >>> ds.checkout_version(1).restore()
        >>> pennon.dataset(uri).count_rows()
        3
        """
        if version:
            message = (
                "restore() makes the version that the dataset is at the newest again, and takes none: "
                f"dataset.checkout_version({version[0]!r}).restore()"
            )
            raise TypeError(message)
        self._turn_to(ops.restore(self._snapshot))

    def shallow_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Reference = None,
        storage_options: dict[str, str] | None = None,
        **options: Unpack[OpenKeywords],
    ) -> Self:
        """Make a version the first one of a new table, whose files stay in this one's place.

        The new table is good as long as this one keeps the version: tag it.  Who opens the clone in another
        process must trust this table's place if it is in another bucket, or listed what to trust
        (``trusted_bases`` of `pennon.dataset`).

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> clone = ds.shallow_clone(uri + "-clone")
        >>> _ = clone.delete("id = 1")
        >>> clone.count_rows(), ds.count_rows()
        (2, 3)
        """
        stores = storage_options or self._storage_options
        source = ops.clone_shallow(self._snapshot, reference, open_store(target_path, stores))
        made = type(self)(target_path, storage_options=stores, **options)
        made._snapshot = ops.trusting(made._snapshot, [source])  # noqa: SLF001
        return made

    def deep_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Reference = None,
        storage_options: dict[str, str] | None = None,
        **options: Unpack[OpenKeywords],
    ) -> Self:
        """Copy a version, with all of its files, to a new table; it depends on nothing here.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> copy = ds.deep_clone(uri + "-copy")
        >>> pennon.LanceDataset.drop(uri)
        >>> copy.count_rows()
        3
        """
        stores = storage_options or self._storage_options
        ops.copy_table(self._snapshot, reference, open_store(target_path, stores))
        return type(self)(target_path, storage_options=stores, **options)

    def base_paths(self) -> dict[int, DatasetBasePath]:
        """Return the base paths of this version by id: places beside the table that it may name files in.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> clone = ds.shallow_clone(uri + "-clone")
        >>> [base.is_dataset_root for base in clone.base_paths().values()]
        [True]
        """
        bases = self._snapshot.manifest.base_paths
        return {base.id: DatasetBasePath.from_base(base) for base in bases}

    def add_bases(
        self,
        new_bases: Sequence[DatasetBasePath],
        transaction_properties: Mapping[str, str] | None = None,
    ) -> Self:
        """Add places for files, and turn this handle to the version made.

        Raises ArgumentError for an id, a name or a path that is taken.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> _ = ds.add_bases([pennon.DatasetBasePath(uri + "-more", name="more")])
        >>> [base.name for base in ds.base_paths().values()]
        ['more']
        """
        bases = tuple(base.to_base() for base in new_bases)
        self._snapshot = ops.add_bases(self._snapshot, bases, transaction_properties or {})
        return self

    def delta(
        self,
        compared_against: int | None = None,
        *,
        begin_version: int | None = None,
        end_version: int | None = None,
    ) -> DatasetDelta:
        """Return the changes between two versions: rows after ``begin_version``, up to ``end_version`` inclusive.

        Either ``compared_against``, a version older or newer than this one, or both
        ``begin_version`` and ``end_version``.

        >>> rows = pa.table({"id": [1, 2, 3]})
        >>> ds = pennon.write_dataset(rows, uri, enable_stable_row_ids=True)
        >>> ds.insert(pa.table({"id": [4]}))
        >>> ds.delta(compared_against=1).get_inserted_rows().read_all()["id"].to_pylist()
        [4]
        """
        from pennon.dataset.delta import DatasetDelta  # noqa: PLC0415 - saves transactions at open

        return DatasetDelta.between(self, compared_against, begin_version, end_version)

    def changes(
        self,
        begin_version: int,
        end_version: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        net: bool = False,
    ) -> pa.RecordBatchReader:
        """Return the rows that each version after ``begin_version`` inserted, updated and deleted.

        Up to and with ``end_version``, by default this one; from 0 on, the rows of the first version are inserted.
        The columns are those of this version, or some of them (older rows have NULL where they have no such
        column), and

        - ``_change_type``: ``insert``, ``delete``, or ``update_preimage`` and ``update_postimage``, the row as it was
          and as it is.  Without stable row ids an update that moves rows is a deletion and an insertion.
        - ``_commit_version`` and ``_commit_timestamp``, of the version that made the change.

        Compactions, clusterings and new or dropped columns change no rows.  Only fragments that differ are read.

        ``net``: of a row that several versions changed only what came of it, as a change that ``end_version`` made.  It
        needs stable row ids if a version moved rows (UnsupportedError).

        Raises NotFoundError for a version that was cleaned up, SchemaMismatchError if a column had a type whose values
        do not fit the one that it has now.

        >>> rows = pa.table({"id": [1, 2, 3]})
        >>> ds = pennon.write_dataset(rows, uri, enable_stable_row_ids=True)
        >>> _ = ds.update({"id": "id * 10"}, where="id = 2")
        >>> _ = ds.delete("id = 3")
        >>> changes = ds.changes(1).read_all()
        >>> changes.select(["id", "_change_type", "_commit_version"]).to_pylist()[0]
        {'id': 2, '_change_type': 'update_preimage', '_commit_version': 2}
        """
        end = self.version if end_version is None else end_version
        delta = self.delta(begin_version=begin_version, end_version=end)
        return delta.read_changes(columns, net=net)


def _describe(summary: Summary) -> Version:
    """Return one version as pylance shows it; the time is local and has no zone."""
    numbers = {
        "total_data_file_rows": summary.physical_rows,
        "total_data_files": summary.files,
        "total_deletion_file_rows": summary.deleted_rows,
        "total_deletion_files": summary.deletion_files,
        "total_files_size": summary.size_bytes,
        "total_fragments": summary.fragments,
        "total_rows": summary.physical_rows - summary.deleted_rows,
    }
    return Version(
        version=summary.version,
        timestamp=summary.timestamp.astimezone().replace(tzinfo=None),
        metadata={name: str(value) for name, value in numbers.items()},
    )
