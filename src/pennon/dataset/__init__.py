"""Tables, with the names of ``lance.dataset``: one file for each thing that hangs on a table's handle."""

from typing import TYPE_CHECKING

from pennon.names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from pennon.blob.file import BlobFile as BlobFile
    from pennon.compat.bitmap import Bitmap as Bitmap
    from pennon.dataset.columns import AlterColumn as AlterColumn
    from pennon.dataset.compaction import Compaction as Compaction
    from pennon.dataset.compaction import CompactionMetrics as CompactionMetrics
    from pennon.dataset.delta import DatasetDelta as DatasetDelta
    from pennon.dataset.fragment import LanceFragment as LanceFragment
    from pennon.dataset.index_descriptions import IndexSegment as IndexSegment
    from pennon.dataset.index_descriptions import (
        SupportedDistributedIndices as SupportedDistributedIndices,
    )
    from pennon.dataset.index_reads import IndexInformation as IndexInformation
    from pennon.dataset.indices import IndexConfig as IndexConfig
    from pennon.dataset.lance_dataset import LanceDataset as LanceDataset
    from pennon.dataset.maintenance import DatasetOptimizer as DatasetOptimizer
    from pennon.dataset.merge_insert import ExecuteResult as ExecuteResult
    from pennon.dataset.merge_insert import MergeInsertBuilder as MergeInsertBuilder
    from pennon.dataset.metadata import DataFile as DataFile
    from pennon.dataset.metadata import FragmentMetadata as FragmentMetadata
    from pennon.dataset.open import dataset as dataset
    from pennon.dataset.open import parse_time as parse_time
    from pennon.dataset.open import td_to_micros as td_to_micros
    from pennon.dataset.open import write_dataset as write_dataset
    from pennon.dataset.operation import LANCE_COMMIT_MESSAGE_KEY as LANCE_COMMIT_MESSAGE_KEY
    from pennon.dataset.operation import Index as Index
    from pennon.dataset.operation import IndexFile as IndexFile
    from pennon.dataset.operation import LanceOperation as LanceOperation
    from pennon.dataset.operation import Transaction as Transaction
    from pennon.dataset.refs import Branch as Branch
    from pennon.dataset.refs import Branches as Branches
    from pennon.dataset.refs import Tag as Tag
    from pennon.dataset.refs import Tags as Tags
    from pennon.dataset.rows import DeleteResult as DeleteResult
    from pennon.dataset.rows import UpdateResult as UpdateResult
    from pennon.dataset.scanner import LanceScanner as LanceScanner
    from pennon.dataset.scanner_builder import ScannerBuilder as ScannerBuilder
    from pennon.dataset.sql import SqlQuery as SqlQuery
    from pennon.dataset.sql import SqlQueryBuilder as SqlQueryBuilder
    from pennon.dataset.stats import DatasetStats as DatasetStats
    from pennon.dataset.stats import DataStatistics as DataStatistics
    from pennon.dataset.stats import FieldStatistics as FieldStatistics
    from pennon.dataset.stats import LanceStats as LanceStats
    from pennon.dataset.transactions import BulkCommitResult as BulkCommitResult
    from pennon.dataset.udf import BatchUDF as BatchUDF
    from pennon.dataset.udf import batch_udf as batch_udf
    from pennon.dataset.vector_reader import VectorIndexReader as VectorIndexReader
    from pennon.dataset.versions import Version as Version
    from pennon.dataset.versions import VersionRef as VersionRef
    from pennon.dataset.write_options import AutoCleanupConfig as AutoCleanupConfig
    from pennon.index.text.queries import DocumentGranularity as DocumentGranularity
    from pennon.index.text.queries import FullTextQuery as FullTextQuery
    from pennon.scan.plan.query import ColumnOrdering as ColumnOrdering
    from pennon.scan.plan.row_masks import serialize_row_addrs as serialize_row_addrs
    from pennon.scan.session import Session as Session
    from pennon.schema.lance_schema import LanceSchema as LanceSchema

__all__ = [
    "LANCE_COMMIT_MESSAGE_KEY",
    "AlterColumn",
    "AutoCleanupConfig",
    "BatchUDF",
    "Bitmap",
    "BlobFile",
    "Branch",
    "Branches",
    "BulkCommitResult",
    "ColumnOrdering",
    "Compaction",
    "CompactionMetrics",
    "DataFile",
    "DataStatistics",
    "DatasetDelta",
    "DatasetOptimizer",
    "DatasetStats",
    "DeleteResult",
    "DocumentGranularity",
    "ExecuteResult",
    "FieldStatistics",
    "FragmentMetadata",
    "FullTextQuery",
    "Index",
    "IndexConfig",
    "IndexFile",
    "IndexInformation",
    "IndexSegment",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LanceSchema",
    "LanceStats",
    "MergeInsertBuilder",
    "ScannerBuilder",
    "Session",
    "SqlQuery",
    "SqlQueryBuilder",
    "SupportedDistributedIndices",
    "Tag",
    "Tags",
    "Transaction",
    "UpdateResult",
    "VectorIndexReader",
    "Version",
    "VersionRef",
    "batch_udf",
    "dataset",
    "parse_time",
    "serialize_row_addrs",
    "td_to_micros",
    "write_dataset",
]

if not TYPE_CHECKING:  # a type checker reads the imports above
    __getattr__ = _lazy_names(__name__, frozenset(__all__))
