"""Writing data for `write_dataset` and `write_fragments`: arguments in, a planned write out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from pennon.dataset.metadata import DataFile, FragmentMetadata
from pennon.dataset.operation_fields import from_table_transaction
from pennon.dataset.progress import FragmentWriteProgress
from pennon.dataset.write_options import WriteOptions as WriteOptions
from pennon.dataset.write_options import with_statistics
from pennon.errors import NoDataError, NotFoundError
from pennon.io import open_store
from pennon.io.durability import hands_over
from pennon.io.store import Store
from pennon.ops.base_paths import into_bases, with_base_paths
from pennon.ops.source import as_reader, check_metadata
from pennon.ops.write import (
    Watcher,
    WriteMode,
    WritePlan,
    commit_write,
    plan_write,
    transaction_of,
    write_fragments,
)
from pennon.scan.snapshot import Snapshot
from pennon.schema.version import V0_1, FileVersion
from pennon.table.commit.lock import CommitLock, locked
from pennon.table.commit.options import CommitPolicy
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.naming import Naming
from pennon.table.versions import latest_version


def write_version(
    data: Any, target: Any, schema: pa.Schema | None, options: WriteOptions
) -> Snapshot:
    """Write data as a new version of a path, a URI or a LanceDataset, and return the version.

    The caches of a LanceDataset are shared.  Raises what `pennon.write_dataset` says.
    """
    request = WriteRequest.of(data, target, schema, options)
    manifest = request.commit()
    old = getattr(target, "snapshot", None)
    made = Snapshot(request.plan.task.store, manifest) if old is None else old.at(manifest)
    return with_statistics(made, options.auto_statistics)


def as_store(
    target: Any,
    storage_options: Mapping[str, str] | None = None,
    commit_lock: CommitLock | None = None,
) -> tuple[Store, Manifest | None]:
    """Return the store of a path, a URI or a LanceDataset, and the version that the last one is at.

    Raises TypeError for anything else.
    """
    snapshot = getattr(target, "snapshot", None)
    if snapshot is not None:
        return locked(snapshot.store, commit_lock), snapshot.manifest
    if not isinstance(target, (str, os.PathLike)):
        message = f"the target must be a str, a Path or a LanceDataset, got {type(target).__name__}"
        raise TypeError(message)
    return locked(open_store(target, storage_options), commit_lock), None


@dataclass(frozen=True, slots=True, eq=False)
class WriteRequest:
    """A planned write, the data for it, and what the caller said about it."""

    plan: WritePlan
    reader: pa.RecordBatchReader
    options: WriteOptions

    @classmethod
    def of(cls, data: Any, target: Any, schema: pa.Schema | None, options: WriteOptions) -> Self:
        """Check the arguments and plan the write; the data is not read yet."""
        reader = as_reader(data, schema, validate=options.validate_input)
        check_metadata(reader.schema)
        store, base = as_store(target, options.storage_options, options.commit_lock)
        plan = plan_write(
            store,
            reader.schema,
            WriteMode.parse(options.mode),
            base=base,
            version=options.file_version,
            limits=options.limits,
            blobs=options.blobs,
        )
        if plan.task.version == V0_1 and isinstance(data, pa.Table):
            unified = reader.read_all().unify_dictionaries()  # of indices that were checked
            reader = as_reader(unified, schema, validate=False)
        return cls(_placed(replace(plan, config=options.config), options), reader, options)

    def commit(self) -> Manifest:
        """Write the data files and make them a version."""
        options = self.options
        naming = Naming.V2 if options.enable_v2_manifest_paths else Naming.V1
        policy = CommitPolicy(naming=naming, stable_row_ids=options.enable_stable_row_ids)
        return commit_write(self.plan, self._write(), options.properties, policy)

    @hands_over
    def write_uncommitted(self, *, as_transaction: bool) -> Any:
        """Write the data files, and return FragmentMetadata or the Transaction to commit."""
        fragments = self._write()
        if as_transaction:
            return from_table_transaction(transaction_of(self.plan, fragments))
        return [FragmentMetadata.from_fragment(fragment) for fragment in fragments]

    @hands_over
    def write_one(self, fragment_id: int) -> FragmentMetadata:
        """Write all data as one fragment of that id.  Raises NoDataError if there is nothing."""
        if not self.plan.task.schema.fields:
            message = "a fragment cannot be written: the data has no column"
            raise NoDataError(message)
        fragments = self._write(fragment_id)
        if not fragments:
            message = "a fragment cannot be written: the data has no row"
            raise NoDataError(message)
        made = FragmentMetadata.from_fragment(fragments[0])
        return replace(made, id=fragment_id)

    def _write(self, fragment_id: int = 0) -> list[Fragment]:
        """Write the data files."""
        watcher = _watcher(self.options.progress, fragment_id, self.plan.task.version)
        return write_fragments(self.plan.task, self.reader, watcher)


def _placed(plan: WritePlan, options: WriteOptions) -> WritePlan:
    """Plan where data files go, if it is not the table's own folder."""
    stores = options.storage_options
    if options.initial_bases:
        bases = [base.to_base() for base in options.initial_bases]
        plan = with_base_paths(plan, bases, stores)
    if options.target_bases or options.target_all_bases:
        return into_bases(plan, options.target_bases or None, stores)
    return plan


def _watcher(
    progress: FragmentWriteProgress | None, fragment_id: int, version: FileVersion
) -> Watcher:
    if progress is None:
        return Watcher()

    def begin(name: str) -> None:
        file = DataFile(name, [], [], *version.to_numbers())
        unknown: Any = None  # as pylance has it: nobody knows the number of rows yet
        progress.begin(FragmentMetadata(fragment_id, [file], unknown))

    def complete(fragment: Fragment) -> None:
        progress.complete(replace(FragmentMetadata.from_fragment(fragment), id=fragment_id))

    return Watcher(begin, complete)


def newest_version(store: Store) -> int:
    """Return the newest version of the table, 0 if there is none."""
    try:
        return latest_version(store)
    except NotFoundError:
        return 0
