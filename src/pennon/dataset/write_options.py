"""What `write_dataset` and `write_fragments` have in common: arguments in, a planned write out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from pennon.compat.arguments import refuse
from pennon.dataset.metadata import DataFile, FragmentMetadata
from pennon.dataset.operation_values import from_table_transaction
from pennon.dataset.progress import FragmentWriteProgress
from pennon.errors import ArgumentError, NoDataError, NotFoundError
from pennon.io import open_store
from pennon.io.store import Store
from pennon.ops.commit import CommitPolicy
from pennon.ops.source import as_reader, check_metadata
from pennon.ops.write import (
    MAX_ROWS_PER_GROUP,
    FileLimits,
    Watcher,
    WriteMode,
    WritePlan,
    commit_write,
    plan_write,
    transaction_of,
    write_fragments,
)
from pennon.schema.version import V0_1, FileVersion
from pennon.table.commit.lock import CommitLock, locked
from pennon.table.manifest import Fragment, Manifest

if TYPE_CHECKING:
    from pennon.dataset.metadata import DatasetBasePath


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


def file_version(name: str | None, use_legacy_format: bool | None) -> FileVersion | None:
    """Return the file version that the caller asks for; None leaves it to the table."""
    if use_legacy_format is not None:
        name = "legacy" if use_legacy_format else "stable"
    return None if name is None else FileVersion.parse(name)


@dataclass(frozen=True, slots=True, eq=False)
class WriteRequest:
    """A planned write and the data for it."""

    plan: WritePlan
    reader: pa.RecordBatchReader

    @classmethod
    def of(
        cls,
        data: Any,
        target: Any,
        schema: pa.Schema | None,
        mode: str,
        *,
        max_rows_per_file: int,
        max_rows_per_group: int | None,
        max_bytes_per_file: int,
        data_cache_bytes: int | None,
        max_page_bytes: int | None,
        rows_per_zone: int | None = None,
        data_storage_version: str | None,
        use_legacy_format: bool | None,
        storage_options: Mapping[str, str] | None,
        commit_lock: CommitLock | None = None,
        config: Mapping[str, str] | None = None,
        initial_bases: Sequence[DatasetBasePath] | None = None,
        target_bases: Sequence[str] | None = None,
        target_all_bases: bool | None = None,
        unsupported: Mapping[str, Any],
    ) -> Self:
        """Check the arguments and plan the write; the data is not read yet."""
        refuse(unsupported)
        reader = as_reader(data, schema)
        check_metadata(reader.schema)
        store, base = as_store(target, storage_options, commit_lock)
        group = MAX_ROWS_PER_GROUP if max_rows_per_group is None else max_rows_per_group
        limits = FileLimits(
            max_rows_per_file,
            max_bytes_per_file,
            data_cache_bytes,
            max_page_bytes,
            group,
            rows_per_zone,
        )
        version = file_version(data_storage_version, use_legacy_format)
        parsed = WriteMode.parse(mode)
        plan = plan_write(store, reader.schema, parsed, base=base, version=version, limits=limits)
        if plan.task.version == V0_1 and isinstance(data, pa.Table):
            reader = as_reader(data.unify_dictionaries(), schema)
        plan = replace(plan, config=config or {})
        plan = _placed(
            plan, initial_bases, target_bases, storage_options, everywhere=target_all_bases
        )
        return cls(plan, reader)

    def write(self, progress: FragmentWriteProgress | None, fragment_id: int = 0) -> list[Fragment]:
        """Write the data files."""
        watcher = _watcher(progress, fragment_id, self.plan.task.version)
        return write_fragments(self.plan.task, self.reader, watcher)

    def write_one(
        self, progress: FragmentWriteProgress | None, fragment_id: int
    ) -> FragmentMetadata:
        """Write all data as one fragment of that id.  Raises NoDataError if there is nothing."""
        if not self.plan.task.schema.fields:
            message = "a fragment cannot be written: the data has no column"
            raise NoDataError(message)
        fragments = self.write(progress, fragment_id)
        if not fragments:
            message = "a fragment cannot be written: the data has no row"
            raise NoDataError(message)
        made = FragmentMetadata.from_fragment(fragments[0])
        return replace(made, id=fragment_id)

    def write_and_commit(
        self,
        progress: FragmentWriteProgress | None,
        properties: Mapping[str, str] | None,
        policy: CommitPolicy,
    ) -> Manifest:
        """Write the data files and make them a version."""
        return commit_write(self.plan, self.write(progress), properties, policy)

    def write_uncommitted(
        self, progress: FragmentWriteProgress | None, *, as_transaction: bool
    ) -> Any:
        """Write the data files, and return FragmentMetadata or the Transaction to commit."""
        fragments = self.write(progress)
        if as_transaction:
            return from_table_transaction(transaction_of(self.plan, fragments))
        return [FragmentMetadata.from_fragment(fragment) for fragment in fragments]


def _placed(
    plan: WritePlan,
    initial: Sequence[DatasetBasePath] | None,
    targets: Sequence[str] | None,
    storage_options: Mapping[str, str] | None,
    *,
    everywhere: bool | None,
) -> WritePlan:
    """Plan where data files go, if it is not the table's own folder."""
    if not initial and not targets and not everywhere:
        return plan
    from pennon.ops.base_paths import into_bases, with_base_paths  # noqa: PLC0415 - as above

    if targets and everywhere:
        message = "either target_bases or target_all_bases, not both"
        raise ArgumentError(message)
    if initial:
        plan = with_base_paths(plan, [base.to_base() for base in initial], storage_options)
    if targets or everywhere:
        return into_bases(plan, targets or None, storage_options)
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
    from pennon.table.versions import latest_version  # noqa: PLC0415

    try:
        return latest_version(store)
    except NotFoundError:
        return 0
