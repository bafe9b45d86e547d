"""Numbers about a table: pylance's ``LanceStats``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, TypedDict

from pennon.core.thread_pools import map_all
from pennon.core.units import FieldId
from pennon.dataset.index_descriptions import statistics_of
from pennon.file.container.file import DataFile
from pennon.file.describe import summarize
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import live_row_counts
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import NO_COLUMN, DataFileRef, Fragment


class DatasetStats(TypedDict):
    """The number of fragments, of small ones among them, and of deleted rows.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds.stats.dataset_stats()
    {'num_deleted_rows': 0, 'num_fragments': 1, 'num_small_files': 1}
    """

    num_deleted_rows: int
    num_fragments: int
    num_small_files: int


@dataclass(frozen=True)
class FieldStatistics:
    """The bytes of a field's pages in all data files.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds.stats.data_stats().fields[0].id
    0
    """

    id: int
    bytes_on_disk: int


@dataclass(frozen=True)
class DataStatistics:
    """The bytes of each field of the schema, those in structs and lists too.

    >>> ds = pennon.write_dataset(pa.table({"id": range(1000), "name": ["a"] * 1000}), uri)
    >>> sizes = {field.id: field.bytes_on_disk for field in ds.stats.data_stats().fields}
    >>> sizes[0] > sizes[1] > 0
    True
    """

    fields: list[FieldStatistics]


class LanceStats:
    """Statistics of one version of a table.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds.create_scalar_index("id", "BTREE")
    >>> ds.stats.index_stats("id_idx")["num_indexed_rows"]
    3
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def dataset_stats(self, max_rows_per_group: int = 1024) -> DatasetStats:
        """Count; a fragment of fewer rows than ``max_rows_per_group``, deleted ones too, is small."""
        physical = [
            FragmentReader(self._snapshot, each).physical_rows() for each in self._fragments
        ]
        return DatasetStats(
            num_deleted_rows=sum(physical) - sum(live_row_counts(self._snapshot)),
            num_fragments=len(physical),
            num_small_files=sum(rows < max_rows_per_group for rows in physical),
        )

    def data_stats(self) -> DataStatistics:
        """Return the bytes of each field; the metadata of every data file is read.

        Fields without pages of their own have none, nor has any in files of version 0.1.
        """
        files = [file for fragment in self._fragments for file in fragment.files]
        total: Counter[FieldId] = Counter()
        for sizes in map_all(self._sizes, files, self._snapshot.pool_spec):
            total.update(sizes)
        fields = self._snapshot.manifest.schema.walk()
        return DataStatistics([FieldStatistics(field.id, total[field.id]) for field in fields])

    def index_stats(self, index_name: str) -> dict[str, Any]:
        """Return how much an index covers; see `LanceDataset.index_statistics`."""
        return statistics_of(self._snapshot, index_name)

    @property
    def _fragments(self) -> tuple[Fragment, ...]:
        return tuple(self._snapshot.manifest.fragments)

    def _sizes(self, ref: DataFileRef) -> dict[FieldId, int]:
        """Return the bytes of each field in a file."""
        file = self._snapshot.open_file(ref).data
        if not isinstance(file, DataFile):
            return {}
        columns = summarize(file).columns
        return {
            field_id: columns[column].size_bytes
            for field_id, column in zip(ref.field_ids, ref.column_indices, strict=True)
            if NO_COLUMN < column < len(columns)
        }
