"""Keywords that methods of `LanceTable` hand on, as TypedDicts, so that a type checker finds a misspelt one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

from pennon.compat.option_types import CompactionMode, IndexOptions, MetricName


class ReadKeywords(TypedDict, total=False):
    """Options of `pennon.spark.read` beside the columns."""

    filter: str | None
    limit: int | None
    aggregate: Mapping[str, str | Sequence[str]] | None
    group_by: Sequence[str]
    version: int | str | None
    tag: str | None
    branch: str | None
    asof: datetime | str | None
    batch_size: int | None
    with_row_id: bool
    with_row_address: bool
    max_partition_bytes: int
    storage_options: Mapping[str, str] | None


class WriteKeywords(TypedDict, total=False):
    """Options of `pennon.spark.write` beside the mode."""

    fixed_size_list: str | Mapping[str, int] | None
    max_rows_per_file: int | None
    max_bytes_per_file: int | None
    data_storage_version: str | None
    where: Any
    overwrite_by: Sequence[str]
    merge_schema: bool
    overwrite_schema: bool
    enable_stable_row_ids: bool
    txn_app_id: str | None
    txn_version: int | None
    storage_options: Mapping[str, str] | None


class ClusterKeywords(TypedDict, total=False):
    """Options of `LanceOptimizeBuilder.executeSortBy` and ``executeZOrderBy``."""

    target_rows_per_fragment: int | None
    max_rows_per_group: int | None
    max_bytes_per_file: int | None
    data_storage_version: str | None


class CompactionKeywords(ClusterKeywords, total=False):
    """Options of ``LanceDataset.optimize.compact_files``."""

    materialize_deletions: bool | None
    materialize_deletions_threshold: float | None
    num_threads: int | None
    batch_size: int | None
    io_buffer_size: int | None
    compaction_mode: CompactionMode | None
    binary_copy_read_batch_bytes: int | None
    defer_index_remap: bool | None
    max_source_fragments: int | None
    max_source_rows: int | None
    max_source_bytes: int | None
    excluded_fragment_ids: Sequence[int] | None


class IndexKeywords(IndexOptions, total=False):
    """Parameters of ``LanceTable.createIndex``, of scalar indices and of vector indices."""

    metric: MetricName
    num_partitions: int
    target_partition_size: int
    num_sub_vectors: int
    ivf_centroids: Any
    pq_codebook: Any
    format_version: int | str | None
    document_granularity: Any
    skip_transpose: bool


class NearestKeywords(TypedDict, total=False):
    """Arguments of a search for near vectors, those of ``nearest`` in `LanceDataset.scanner`."""

    metric: MetricName | None
    nprobes: int | None
    minimum_nprobes: int | None
    maximum_nprobes: int | None
    refine_factor: int | None
    use_index: bool
    ef: int | None
    query_parallelism: int | None
    approx_mode: str
    distance_range: tuple[float | None, float | None] | None
    search_effort: float | None
