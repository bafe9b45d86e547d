"""Keeping a table in shape: compaction, and clearing away old versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

from pennon.errors import UnsupportedError
from pennon.scan.snapshot import Snapshot

if TYPE_CHECKING:
    from pennon.lance_dataset import LanceDataset
    from pennon.optimize import CompactionMetrics


class AutoCleanupConfig(TypedDict):
    """After how many commits, and beyond what age, pylance clears away old versions by itself."""

    interval: int
    older_than_seconds: int


class DatasetUpkeep:
    """The methods of `LanceDataset` that keep a table in shape."""

    _snapshot: Snapshot

    @property
    def optimize(self) -> DatasetOptimizer:
        """Return what compacts the table."""
        return DatasetOptimizer(self)  # type: ignore[arg-type] # a part of LanceDataset


class DatasetOptimizer:
    """Makes a table's fragments fewer and fuller."""

    def __init__(self, dataset: LanceDataset) -> None:
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
    ) -> CompactionMetrics:
        """Rewrite small fragments into large ones, without deleted rows and dropped columns.

        A fragment with fewer rows than ``target_rows_per_fragment`` (2**20) is rewritten together
        with neighbours of which the same is true; one of whose rows more than
        ``materialize_deletions_threshold`` (0.1) are deleted, also alone.  ``max_source_fragments``,
        ``max_source_rows`` and ``max_source_bytes`` bound what one call takes on, oldest first;
        fragments of ``excluded_fragment_ids`` stay as they are.  ``num_threads`` bins are rewritten
        at once, in batches of ``batch_size`` rows.  New files are of ``data_storage_version``, by
        default the table's.  Values that are not given are those of the table's config
        (``lance.compaction.*``).

        Rows of a bin keep their order, and with stable row ids their ids; new fragments come behind
        the others.  Binary copies are not made: whatever the ``compaction_mode``, rows are encoded
        anew.  An index that goes by addresses no longer covers the rows that moved.

        Raises RetryableConflict if another writer changed one of the fragments meanwhile,
        UnsupportedError for a deferred remapping of indices and for file versions not written.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        from pennon.optimize import Compaction  # noqa: PLC0415 - who only reads needs none

        return Compaction.execute(self._dataset, given)

    def optimize_indices(self, **_: Any) -> None:
        """Refuse: there are no indices yet."""
        message = "optimize_indices is not supported yet"
        raise UnsupportedError(message)

    def enable_auto_cleanup(self, auto_cleanup_config: AutoCleanupConfig, **_: Any) -> None:
        """Let writers that look at the table's config (pylance) clear away old versions.

        Pennon never does so by itself.
        """
        seconds = auto_cleanup_config["older_than_seconds"]
        config = {
            "lance.auto_cleanup.interval": str(auto_cleanup_config["interval"]),
            "lance.auto_cleanup.older_than": f"{seconds}s",
        }
        self._dataset.update_config(config)

    def disable_auto_cleanup(self, **_: Any) -> None:
        """Undo `enable_auto_cleanup`."""
        keys = ["lance.auto_cleanup.interval", "lance.auto_cleanup.older_than"]
        self._dataset.delete_config_keys(keys)
