"""Types of options, so that a type checker finds a misspelt one: names of modes, kinds and metrics, and keywords.

A method that hands its keywords on is annotated ``**options: Unpack[...]`` with one of the TypedDicts here: a type
checker, and an editor, then know each keyword, as if it stood in the method's signature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict
from uuid import UUID

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.compute as pc

Columns: TypeAlias = "list[str] | tuple[str, ...] | dict[str, str] | None"
"""Names of columns, or new names with columns or SQL; one name alone stands in a list, too."""
Filter: TypeAlias = "str | pc.Expression | None"
"""SQL, or an expression of pyarrow."""
WriteModeName: TypeAlias = Literal["create", "append", "overwrite"]
MergeModeName: TypeAlias = Literal["auto", "rewrite_rows", "rewrite_columns"]
CompactionMode: TypeAlias = Literal["reencode", "try_binary_copy", "force_binary_copy"]
BlobHandling: TypeAlias = Literal["all_binary", "blobs_descriptions", "all_descriptions"]
BlobMode: TypeAlias = Literal["lazy", "bytes", "descriptions"]
ApproxMode: TypeAlias = Literal["fast", "normal", "accurate"]
MetricName: TypeAlias = Literal[
    "l2",
    "L2",
    "euclidean",
    "Euclidean",
    "cosine",
    "Cosine",
    "dot",
    "Dot",
    "hamming",
    "Hamming",
]
"""Every case works at run time; these are the ones that a type checker knows."""
ScalarIndexKind: TypeAlias = Literal[
    "BTREE",
    "BITMAP",
    "LABEL_LIST",
    "INVERTED",
    "FTS",
    "NGRAM",
    "ZONEMAP",
    "BLOOMFILTER",
    "RTREE",
    "MINHASHLSH",
]
VectorIndexKind: TypeAlias = Literal[
    "IVF_FLAT",
    "IVF_PQ",
    "IVF_SQ",
    "IVF_RQ",
    "IVF_HNSW_FLAT",
    "IVF_HNSW_PQ",
    "IVF_HNSW_SQ",
]


class ArrowOptions(TypedDict, total=False):
    """Options of pyarrow's scanners, which are accepted and change nothing."""

    fragment_scan_options: Any
    use_threads: bool
    cache_metadata: bool
    memory_pool: Any


class SomeScanOptions(ArrowOptions, total=False):
    """Options of `LanceDataset.scanner` that few reads need."""

    fragments: Iterable[Any] | None
    index_segments: Iterable[str | UUID] | None
    scan_stats_callback: Callable[[Any], object] | None
    row_addr_allowlist: bytes | None
    row_addr_blocklist: bytes | None


class ScanKeywords(SomeScanOptions, total=False):
    """All options of `LanceDataset.scanner` beside columns, filter and limit."""

    offset: int | None
    nearest: Mapping[str, Any] | None
    batch_size: int | None
    batch_size_bytes: int | None
    batch_readahead: int | None
    fragment_readahead: int | None
    scan_in_order: bool | None
    full_text_query: Any
    prefilter: bool | None
    with_row_id: bool | None
    with_row_address: bool | None
    use_stats: bool | None
    fast_search: bool | None
    io_buffer_size: int | None
    late_materialization: bool | list[str] | None
    blob_handling: BlobHandling | None
    use_scalar_index: bool | None
    include_deleted_rows: bool | None
    strict_batch_size: bool | None
    order_by: Sequence[Any] | None
    disable_scoring_autoprojection: bool | None


class FilteredKeywords(ScanKeywords, total=False):
    """Options of scans of filtered rows."""

    limit: int | None


class HeadKeywords(ScanKeywords, total=False):
    """Options of `LanceDataset.head`."""

    columns: Columns
    filter: Filter


class FragmentScanKeywords(TypedDict, total=False):
    """Options of `LanceFragment.scanner` beside columns and filter."""

    limit: int | None
    offset: int | None
    batch_size: int | None
    with_row_id: bool
    with_row_address: bool
    batch_readahead: int
    blob_handling: BlobHandling | None
    order_by: Sequence[Any] | None
    use_scalar_index: bool | None
    io_buffer_size: int | None
    late_materialization: bool | list[str] | None
    include_deleted_rows: bool | None
    batch_size_bytes: int | None
    strict_batch_size: bool | None


class PandasOptions(TypedDict, total=False):
    """Options of `pyarrow.Table.to_pandas`."""

    memory_pool: Any
    categories: list[str]
    strings_to_categorical: bool
    zero_copy_only: bool
    integer_object_nulls: bool
    date_as_object: bool
    timestamp_as_object: bool
    use_threads: bool
    deduplicate_objects: bool
    ignore_metadata: bool
    safe: bool
    split_blocks: bool
    self_destruct: bool
    maps_as_pydicts: str
    types_mapper: Callable[[pa.DataType], Any]
    coerce_temporal_nanoseconds: bool


class ScanToPandasOptions(PandasOptions, SomeScanOptions, total=False):
    """Options of `LanceDataset.to_pandas`: those of a scan, and pyarrow's."""


class TextIndexOptions(TypedDict, total=False):
    """Parameters of a full-text index."""

    analyzer: Literal["text", "code"]
    base_tokenizer: str
    language: str
    with_position: bool
    max_token_length: int | None
    lower_case: bool
    stem: bool
    remove_stop_words: bool
    custom_stop_words: list[str] | None
    ascii_folding: bool
    min_ngram_length: int
    max_ngram_length: int
    prefix_only: bool
    block_size: int
    split_identifiers: bool
    split_on_numerics: bool
    preserve_original: bool
    index_operators: bool
    memory_limit: int
    num_workers: int


class ScalarIndexOptions(TextIndexOptions, total=False):
    """Parameters of indices of all scalar kinds."""

    zone_size: int
    number_of_items: int
    probability: float
    rows_per_zone: int


class VectorIndexOptions(TypedDict, total=False):
    """Parameters of vector indices beside those that `LanceDataset.create_index` names."""

    num_bits: int
    sample_rate: int
    max_iters: int
    max_iterations: int
    m: int
    ef_construction: int
    max_level: int
    seed: int
    kmeans_redos: int
    prefetch_distance: int | None
    index_file_version: Any
    rotation_type: str


class IndexOptions(ScalarIndexOptions, VectorIndexOptions, total=False):
    """Parameters of indices of all kinds."""


class OptimizeIndicesOptions(TypedDict, total=False):
    """Options of `DatasetOptimizer.optimize_indices`."""

    num_indices_to_merge: int | None
    index_names: list[str] | None
    retrain: bool


class NoOptions(TypedDict):
    """No options: a keyword is refused, with the nearest parameter in the message."""


class WriteKeywords(TypedDict, total=False):
    """Options of `pennon.write_dataset` beside the mode, as `LanceDataset.insert` takes them."""

    schema: Any
    max_rows_per_file: int
    max_rows_per_group: int
    max_bytes_per_file: int
    data_cache_bytes: int | None
    max_page_bytes: int | None
    rows_per_zone: int | None
    commit_lock: Any
    progress: Any
    storage_options: Mapping[str, str] | None
    data_storage_version: str | None
    use_legacy_format: bool | None
    enable_v2_manifest_paths: bool
    enable_stable_row_ids: bool
    auto_cleanup_options: Any
    commit_message: str | None
    transaction_properties: dict[str, str] | None
    initial_bases: Sequence[Any] | None
    target_bases: Sequence[str] | None
    target_all_bases: bool | None
    validate_input: bool
    external_blob_mode: Literal["reference", "ingest"]
    allow_external_blob_outside_bases: bool
    blob_pack_file_size_threshold: int | None
    auto_statistics: bool | None


class FragmentTableKeywords(TypedDict, total=False):
    """Options of `LanceFragment.to_table` that pylance has in `LanceFragment.scanner` only."""

    batch_size: int | None
    batch_readahead: int


class NotSupportedYet(TypedDict, total=False):
    """Options of pylance that a call may have as None or False only."""

    namespace_client: Any
    table_id: Any
    base_store_params: Any
    namespace_client_managed_versioning: Any
    index_cache_backend: Any
    metadata_cache_backend: Any
    store_registry: Any


class OpenKeywords(TypedDict, total=False):
    """Options of `pennon.dataset` that a clone is opened with."""

    version: int | str | None
    block_size: int | None
    index_cache_size: int | None
    metadata_cache_size: int | None
    commit_lock: Any
    default_scan_options: dict[str, Any] | None
    metadata_cache_size_bytes: int | None
    index_cache_size_bytes: int | None
    read_params: dict[str, Any] | None
    session: Any
    trusted_bases: Sequence[Any] | None


class WriteNotSupportedYet(NotSupportedYet, total=False):
    """Options of pylance's writers that a call may have as None or False only."""

    session: Any


class FragmentsNotSupportedYet(WriteNotSupportedYet, total=False):
    """Options of pylance's ``write_fragments`` that a call may have as None or False only."""

    initial_bases: Any
    target_bases: Any
    target_all_bases: Any
    blob_pack_file_size_threshold: Any
