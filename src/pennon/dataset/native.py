"""The names of pylance's native handle, ``LanceDataset._ds``, for programs that use it.

pylance's `LanceDataset` passes its calls on to an object of Rust, which is private; some programs call it all the
same: for statistics of caches, for a manifest to send to workers, for rows in slices.  Here it is a thin view of the
table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pennon.core.near_names import did_you_mean
from pennon.table.manifest_wire import serialize_manifest_file

if TYPE_CHECKING:
    from pennon.dataset.metadata import DatasetBasePath
    from pennon.scan.session import Session
    from pennon.schema.lance_schema import LanceSchema

_SAME: Final = frozenset(
    [
        "add_bases",
        "all_files",
        "checkout_latest",
        "checkout_version",
        "config",
        "count_rows",
        "create_branch",
        "data_storage_version",
        "delete",
        "delete_config_keys",
        "describe_indices",
        "drop_columns",
        "drop_index",
        "explain_cleanup_old_versions",
        "fragment_ids",
        "get_fragment",
        "get_fragments",
        "get_ivf_model",
        "get_transactions",
        "has_stable_row_ids",
        "initial_storage_options",
        "latest_storage_options",
        "merge_existing_index_segments",
        "migrate_manifest_paths_v2",
        "prewarm_index",
        "read_transaction",
        "replace_field_metadata",
        "replace_schema_metadata",
        "restore",
        "session",
        "sql",
        "tracked_files",
        "truncate_table",
        "update",
        "update_config",
        "update_metadata",
        "validate",
        "version_refs",
        "versions",
    ]
)
"""The names that mean the same there and in `LanceDataset`."""


class NativeDataset:
    """A view of a table under the names of pylance's native handle; changes turn the table's handle, too."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a method or property of the table that means the same."""
            if name in _SAME:
                return getattr(self._dataset, name)
            hint = did_you_mean(name, {*_SAME, *vars(NativeDataset)})
            message = f"'LanceDataset._ds' has no attribute {name!r}{hint}; use the methods of LanceDataset"
            raise AttributeError(message)

    def __dir__(self) -> Iterable[str]:
        """Return all names."""
        return sorted({*super().__dir__(), *_SAME})

    @property
    def uri(self) -> str:
        """Return the place of the table."""
        return str(self._dataset.uri)

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the table itself; ``default_scan_options`` do not change it."""
        return self._dataset.lance_schema.to_pyarrow()

    @property
    def lance_schema(self) -> LanceSchema:
        """Return the schema with field ids."""
        found: LanceSchema = self._dataset.lance_schema
        return found

    def version(self) -> int:
        """Return the number of the version."""
        return int(self._dataset.version)

    def latest_version(self) -> int:
        """Return the number of the newest version."""
        return int(self._dataset.latest_version)

    def current_version(self) -> Any:
        """Return the version with its time and metadata."""
        return self._dataset.get_version()

    def get_version(self, tag: str) -> int:
        """Return the number of the version that a tag names."""
        return int(self._dataset.tags.get_version(tag))

    def tags(self) -> dict[str, Any]:
        """Return all tags."""
        return dict(self._dataset.tags.list())

    def branches(self) -> dict[str, Any]:
        """Return all branches."""
        return dict(self._dataset.branches.list())

    def base_paths(self) -> dict[int, DatasetBasePath]:
        """Return the further places of files, by their ids."""
        found: dict[int, DatasetBasePath] = self._dataset.base_paths()
        return found

    def count_fragments(self) -> int:
        """Return the number of fragments."""
        return len(self._dataset.fragment_ids())

    def count_deleted_rows(self) -> int:
        """Return the number of deleted rows that data files still have."""
        return int(self._dataset.stats.dataset_stats()["num_deleted_rows"])

    def num_small_files(self, max_rows_per_group: int) -> int:
        """Return the number of fragments that have fewer rows."""
        return int(self._dataset.stats.dataset_stats(max_rows_per_group)["num_small_files"])

    def data_stats(self) -> Any:
        """Return the bytes of each field."""
        return self._dataset.stats.data_stats()

    def index_statistics(self, index_name: str) -> str:
        """Return statistics of an index as JSON."""
        return json.dumps(self._dataset.stats.index_stats(index_name))

    def take(
        self,
        row_indices: list[int],
        columns: list[str] | None = None,
        columns_with_transform: list[tuple[str, str]] | None = None,
    ) -> pa.RecordBatch:
        """Return rows by their number, in one batch."""
        shown = _columns(columns, columns_with_transform)
        return _one_batch(self._dataset.take(row_indices, shown))

    def take_rows(
        self,
        row_indices: list[int],
        columns: list[str] | None = None,
        columns_with_transform: list[tuple[str, str]] | None = None,
    ) -> pa.RecordBatch:
        """Return rows by their row id, in one batch."""
        shown = _columns(columns, columns_with_transform)
        return _one_batch(self._dataset._take_rows(row_indices, shown))  # noqa: SLF001 - this is its view

    def take_scan(
        self,
        row_slices: Iterable[tuple[int, int]],
        columns: list[str] | None = None,
        batch_readahead: int = 10,
    ) -> pa.RecordBatchReader:
        """Return a reader with a batch for each slice of row numbers, ``(start, end)``."""
        schema = self._dataset.scanner(columns).projected_schema

        def batches() -> Iterator[pa.RecordBatch]:
            for start, end in row_slices:
                yield _one_batch(self._dataset.slice(start, end, columns))

        return pa.RecordBatchReader.from_batches(schema, batches())

    def serialized_manifest(self) -> bytes:
        """Return the manifest, for `LanceDataset(…, serialized_manifest=…)` in another process."""
        return serialize_manifest_file(self._dataset.snapshot.manifest)

    def session(self) -> Session:
        """Return the session."""
        found: Session = self._dataset.session()
        return found

    def index_cache_entry_count(self) -> int:
        """Return the number of parts of indices that the session remembers."""
        return int(self._dataset.session().index_cache_entries)

    def index_cache_hit_rate(self) -> float:
        """Return the share of questions for parts of indices that the session could answer; 0 before the first."""
        return float(self._dataset.session().index_cache_hit_rate)


def _columns(
    columns: list[str] | None, transforms: list[tuple[str, str]] | None
) -> list[str] | dict[str, str] | None:
    return dict(transforms) if transforms is not None else columns


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
