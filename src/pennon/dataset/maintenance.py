"""Keeping a table in shape: compaction, and clearing away old versions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal, Unpack

import pyarrow as pa

from pennon import ops
from pennon.compat.arguments import unknown_option
from pennon.compat.option_types import NoOptions, OptimizeIndicesOptions
from pennon.dataset.base import DatasetBase
from pennon.errors import ArgumentError
from pennon.io import open_store
from pennon.ops.bars import Progress, told_to

if TYPE_CHECKING:
    from pennon.dataset.cleanup import CleanupExplanation, CleanupStats
    from pennon.dataset.compaction import CompactionMetrics
    from pennon.dataset.stats import LanceStats
    from pennon.dataset.write_options import AutoCleanupConfig
    from pennon.file.session import LanceFileSession
    from pennon.ops.doctor.findings import Report

_INDEX_OPTIONS: Final = frozenset(("num_indices_to_merge", "index_names", "retrain"))


class DatasetMaintenance(DatasetBase):
    """The methods of `LanceDataset` that keep a table in shape."""

    @property
    def optimize(self) -> DatasetOptimizer:
        """Return the table's optimizer: compaction, index updates, automatic clean-up.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri, max_rows_per_file=1)
        >>> ds.optimize.compact_files().fragments_removed
        3
        """
        return DatasetOptimizer(self)

    @property
    def stats(self) -> LanceStats:
        """Return the table's statistics: fragments, deleted rows, bytes.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.stats.dataset_stats()
        {'num_deleted_rows': 0, 'num_fragments': 1, 'num_small_files': 1}
        """
        from pennon.dataset.stats import LanceStats  # noqa: PLC0415 - saves file descriptions at open

        return LanceStats(self._snapshot)

    def doctor(self, *, deep: bool = False, threads: int | None = None) -> Report:
        """Examine this version and everything around it; nothing is written.  See `pennon.doctor.examine`.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.doctor(deep=True).is_sound
        True
        """
        run = ops.on_threads(threads)
        return ops.examine_snapshot(self._snapshot, deep=deep, run=run).report()

    @staticmethod
    def drop(
        base_uri: str | os.PathLike[str],
        storage_options: dict[str, str] | None = None,
        ignore_not_found: bool | None = None,
    ) -> None:
        """Delete a table, all of its versions, tags and branches, and everything else in its folder.

        Tables that were cloned from it, but not deeply, lose their files.

        Raises NotFoundError where there is nothing, unless that is to be ignored; ArgumentError for a
        place that is no table, or a branch of one, of which nothing is deleted then.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> pennon.LanceDataset.drop(uri)
        """
        ops.drop_table(open_store(base_uri, storage_options), missing_ok=bool(ignore_not_found))

    def cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Iterable[int] | None = None,
        delete_concurrency: int | None = None,
    ) -> CleanupStats:
        """Delete old versions, the files that only they needed, and orphans.

        Old are versions that were stored at least ``older_than`` ago (two weeks, if nothing is
        said), are not among the last ``retain_versions``, and are among ``versions``.  What a tag
        names, a branch left, or this handle stands on stays, and so do all newer versions; an old
        version with a tag is an error unless ``error_if_tagged_old_versions`` is false.  Times are
        the store's: writers' clocks do not matter.

        Files that no version ever named are orphans, and go when they are 7 days old, for until then
        they may belong to a writer that is about to commit; with ``delete_unverified`` at once, which
        is safe only while nobody writes.  Tables that were cloned from old versions into other places
        lose their files: give such versions a tag.

        At most ``delete_rate_limit`` files are deleted in a second, ``delete_concurrency`` at once.
        A run that is cut short leaves the table whole, and the next one finishes it.

        Raises TaggedVersionsError; FormatError or UnsupportedError for a manifest that cannot be
        read, in which case nothing is deleted.

        >>> from datetime import timedelta
        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> _ = ds.delete("id = 1")
        >>> ds.cleanup_old_versions(timedelta(0)).old_versions
        1
        """
        from pennon.dataset.cleanup import stats_of  # noqa: PLC0415 - saves clean-up at open

        policy = ops.Policy.of(
            older_than,
            retain_versions,
            versions,
            delete_unverified=delete_unverified,
            error_if_tagged=error_if_tagged_old_versions,
        )
        pace = ops.Pace(delete_rate_limit, delete_concurrency)
        return stats_of(ops.clean(self._snapshot, policy, pace))

    def explain_cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Iterable[int] | None = None,
        include_files: bool = False,
        max_files: int = 1000,
    ) -> CleanupExplanation:
        """List what `cleanup_old_versions` would delete; nothing is written or deleted.

        With ``include_files`` up to ``max_files`` files are listed; the numbers count all.  Ages are
        reckoned by this computer's clock here.

        >>> from datetime import timedelta
        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> _ = ds.delete("id = 1")
        >>> ds.explain_cleanup_old_versions(timedelta(0)).stats.old_versions
        1
        """
        from pennon.dataset.cleanup import explain  # noqa: PLC0415 - as above

        if max_files < 1:
            message = f"max_files must be positive, got {max_files}"
            raise ArgumentError(message)
        policy = ops.Policy.of(
            older_than,
            retain_versions,
            versions,
            delete_unverified=delete_unverified,
            error_if_tagged=error_if_tagged_old_versions,
        )
        return explain(self._snapshot, policy, max_files, include_files=include_files)

    def all_files(self) -> pa.RecordBatchReader:
        """Return all files below the table's folder: base_uri, path, size_bytes, last_modified.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.all_files().read_all().column_names
        ['base_uri', 'path', 'size_bytes', 'last_modified']
        """
        return ops.all_files(ops.survey_of(self._snapshot), self._uri)

    def new_file_session(self) -> LanceFileSession:
        """Return a session that reads and writes single files in the table's folder, with its credentials.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.new_file_session().list_with_delimiter().common_prefixes
        ['_transactions', '_versions', 'data']
        """
        session: LanceFileSession = import_module("pennon.file.session").LanceFileSession.of_store(
            self._snapshot.store
        )
        return session

    def tracked_files(
        self,
        *,
        min_version: int | None = None,
        progress: Callable[[int, int | None], object] | None = None,
    ) -> pa.RecordBatchReader:
        """Return the files that each version names, from ``min_version`` on.

        The columns are version, base_uri, path, and type (manifest, data file, deletion file,
        transaction file, index file).  ``progress`` is called after each version with the number of
        versions done and that of all.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.tracked_files().read_all()["type"].to_pylist()
        ['manifest', 'transaction file', 'data file']
        """
        return ops.tracked_files(ops.survey_of(self._snapshot), self._uri, min_version, progress)


class DatasetOptimizer:
    """Compacts a table, brings its indices up to date, sets its automatic clean-up.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri, max_rows_per_file=1)
    >>> ds.optimize.compact_files().fragments_removed
    3
    >>> len(ds.get_fragments())
    1
    """

    def __init__(self, dataset: DatasetBase) -> None:
        """Take the table."""
        self._dataset = dataset

    def compact_files(
        self,
        *,
        target_rows_per_fragment: int | None = None,
        max_rows_per_group: int | None = None,
        max_bytes_per_file: int | None = None,
        materialize_deletions: bool | None = None,
        materialize_deletions_threshold: float | None = None,
        defer_index_remap: bool | None = None,
        num_threads: int | None = None,
        batch_size: int | None = None,
        compaction_mode: Literal["reencode", "try_binary_copy", "force_binary_copy"] | None = None,
        binary_copy_read_batch_bytes: int | None = None,
        max_source_fragments: int | None = None,
        max_source_rows: int | None = None,
        max_source_bytes: int | None = None,
        excluded_fragment_ids: list[int] | None = None,
        data_storage_version: str | None = None,
        progress: Progress | None = None,
    ) -> CompactionMetrics:
        """Rewrite small fragments into large ones, without deleted rows and dropped columns.

        A fragment with fewer rows than ``target_rows_per_fragment`` (2**20) is rewritten together
        with neighbours of which the same is true; one of whose rows more than
        ``materialize_deletions_threshold`` (0.1) are deleted, also alone.  ``max_source_fragments``,
        ``max_source_rows`` and ``max_source_bytes`` bound what one call takes on, oldest first;
        fragments of ``excluded_fragment_ids`` stay as they are.  ``num_threads`` bins are rewritten
        at once, in batches of ``batch_size`` rows.  New files are of ``data_storage_version``, by
        default the table's.  Values that are not given are those of the table's config
        (``lance.compaction.*``).  ``progress`` is told how many bins are done, of how many.

        Rows of a bin keep their order, and with stable row ids their ids; new fragments come behind
        the others.  Binary copies are not made: whatever the ``compaction_mode``, rows are encoded
        anew.  An index that goes by addresses no longer covers the rows that moved.

        Raises RetryableConflict if another writer changed one of the fragments meanwhile,
        UnsupportedError for a deferred remapping of indices and for file versions not written.
        """
        given = {name: v for name, v in locals().items() if name not in ("self", "progress")}
        from pennon.dataset.compaction import Compaction  # noqa: PLC0415 - saves writers at open

        with told_to(progress):
            return Compaction.execute(self._dataset, given)

    def optimize_indices(
        self, *, progress: Progress | None = None, **options: Unpack[OptimizeIndicesOptions]
    ) -> None:
        """Index the rows that came since, merge segments, and turn the handle to the version made.

        The options are pylance's: ``num_indices_to_merge`` (by default 1: new rows join the last segment; 0: they
        are a segment of their own), ``index_names`` and ``retrain`` (every index is made anew).  Raises TypeError
        for any other.  Indices of kinds that Pennon does not make are left alone, with a warning.
        ``progress`` is told how many pieces of each piece of work are done, of how many.
        """
        for name in sorted(options.keys() - _INDEX_OPTIONS):
            raise unknown_option("optimize_indices", name, sorted(_INDEX_OPTIONS))
        with told_to(progress):
            made = ops.optimize_indices(self._dataset.snapshot, **options)
        if made is not None:
            self._dataset._turn_to(made)  # noqa: SLF001 - its own

    def enable_auto_cleanup(
        self, auto_cleanup_config: AutoCleanupConfig, **options: Unpack[NoOptions]
    ) -> None:
        """Let writers that look at the table's config (pylance) clear away old versions.

        Pennon never does so by itself.
        """
        for name in options:
            raise unknown_option("enable_auto_cleanup", name, ("auto_cleanup_config",))
        self._configure(_auto_cleanup(auto_cleanup_config))

    def disable_auto_cleanup(self) -> None:
        """Undo `enable_auto_cleanup`."""
        self._configure(dict.fromkeys(_auto_cleanup({})))

    def _configure(self, values: Mapping[str, str | None]) -> None:
        snapshot = self._dataset.snapshot
        self._dataset._turn_to(ops.update_config(snapshot, values))  # noqa: SLF001 - its own


def _auto_cleanup(given: AutoCleanupConfig) -> dict[str, str]:
    """Return the table's config that says how writers clean up."""
    from pennon.dataset.write_options import cleanup_config  # noqa: PLC0415 - saves write options at open

    return cleanup_config(given)
