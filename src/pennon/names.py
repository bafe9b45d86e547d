"""The public names and their homes: one table, from which the doors hand names on when they are asked.

A door is a module that pylance has too (``pennon``, ``pennon.dataset``, ``pennon.file``).  Importing
one loads only what its first users need: pyarrow.dataset imports pandas, which takes longer than all
the rest of Pennon, and who only reads needs no writer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any, Final

HOMES: Final = {
    "AlterColumn": "pennon.dataset.columns",
    "AutoCleanupConfig": "pennon.dataset.write_options",
    "BatchUDF": "pennon.dataset.udf",
    "Bitmap": "pennon.compat.bitmap",
    "Blob": "pennon.schema.blob_type",
    "BlobArray": "pennon.schema.blob_type",
    "BlobColumn": "pennon.blob.file",
    "BlobFile": "pennon.blob.file",
    "Branch": "pennon.dataset.refs",
    "Branches": "pennon.dataset.refs",
    "BulkCommitResult": "pennon.dataset.transactions",
    "CleanupCandidateFile": "pennon.dataset.cleanup",
    "CleanupExplanation": "pennon.dataset.cleanup",
    "CleanupReferencedBranch": "pennon.dataset.cleanup",
    "CleanupStats": "pennon.dataset.cleanup",
    "ColumnOrdering": "pennon.scan.plan.query",
    "Compaction": "pennon.dataset.compaction",
    "CompactionMetrics": "pennon.dataset.compaction",
    "DataFile": "pennon.dataset.metadata",
    "DataStatistics": "pennon.dataset.stats",
    "DatasetBasePath": "pennon.dataset.metadata",
    "DatasetDelta": "pennon.dataset.delta",
    "DatasetOptimizer": "pennon.dataset.maintenance",
    "DatasetStats": "pennon.dataset.stats",
    "DeleteResult": "pennon.dataset.rows",
    "DocumentGranularity": "pennon.index.text.queries",
    "ExecuteResult": "pennon.dataset.merge_insert",
    "FieldStatistics": "pennon.dataset.stats",
    "FragmentMetadata": "pennon.dataset.metadata",
    "FullTextQuery": "pennon.index.text.queries",
    "Index": "pennon.dataset.operation",
    "IndexConfig": "pennon.dataset.indices",
    "IndexInformation": "pennon.dataset.index_reads",
    "IndexProgress": "pennon.ops.index.progress",
    "IndexFile": "pennon.dataset.operation",
    "IndexSegment": "pennon.dataset.index_descriptions",
    "LANCE_COMMIT_MESSAGE_KEY": "pennon.dataset.operation",
    "LanceBufferDescriptor": "pennon.file.describe",
    "LanceColumnMetadata": "pennon.file.describe",
    "LanceDataset": "pennon.dataset.lance_dataset",
    "LanceFileMetadata": "pennon.file.describe",
    "LanceFileReader": "pennon.file.facade",
    "LanceFileSession": "pennon.file.session",
    "LanceFileStatistics": "pennon.file.describe",
    "LanceFileWriter": "pennon.file.facade",
    "LanceFragment": "pennon.dataset.fragment",
    "LanceOperation": "pennon.dataset.operation",
    "LancePageMetadata": "pennon.file.describe",
    "LanceScanner": "pennon.dataset.scanner",
    "LanceStats": "pennon.dataset.stats",
    "LanceSchema": "pennon.schema.lance_schema",
    "MergeInsertBuilder": "pennon.dataset.merge_insert",
    "ListResult": "pennon.file.session",
    "ScanStatistics": "pennon.scan.metrics",
    "ReaderResults": "pennon.file.facade",
    "ScannerBuilder": "pennon.dataset.scanner_builder",
    "Session": "pennon.scan.session",
    "SqlQuery": "pennon.dataset.sql",
    "SqlQueryBuilder": "pennon.dataset.sql",
    "SupportedDistributedIndices": "pennon.dataset.index_descriptions",
    "Tag": "pennon.dataset.refs",
    "Tags": "pennon.dataset.refs",
    "Transaction": "pennon.dataset.operation",
    "UpdateResult": "pennon.dataset.rows",
    "VectorIndexReader": "pennon.dataset.vector_reader",
    "Version": "pennon.dataset.versions",
    "VersionRef": "pennon.dataset.versions",
    "batch_udf": "pennon.dataset.udf",
    "blob_array": "pennon.schema.blob_type",
    "blob_field": "pennon.schema.blob_type",
    "bytes_read_counter": "pennon.core.io_counters",
    "dataset": "pennon.dataset.open",
    "install_as_lance": "pennon.as_lance.install",
    "iops_counter": "pennon.core.io_counters",
    "json_to_schema": "pennon.schema.json_schema",
    "parse_time": "pennon.dataset.open",
    "schema_to_json": "pennon.schema.json_schema",
    "set_logger": "pennon.log",
    "serialize_row_addrs": "pennon.scan.plan.row_masks",
    "stable_version": "pennon.file.facade",
    "td_to_micros": "pennon.dataset.open",
    "write_dataset": "pennon.dataset.open",
}


def lazy_names(
    door: str, offered: Collection[str], homes: Mapping[str, str] = HOMES
) -> Callable[[str], Any]:
    """Return a door's ``__getattr__``: it imports the home of an offered name when that is first used."""

    def get(name: str) -> Any:
        if name in offered:
            return getattr(import_module(homes[name]), name)
        message = f"module {door!r} has no attribute {name!r}"
        raise AttributeError(message)

    return get
