"""Tables, with the names of ``lance.dataset``: one file for each thing that hangs on a table's handle."""

from typing import TYPE_CHECKING

from pennon.names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from pennon.blob.file import BlobFile as BlobFile
    from pennon.dataset.columns import AlterColumn as AlterColumn
    from pennon.dataset.compaction import Compaction as Compaction
    from pennon.dataset.compaction import CompactionMetrics as CompactionMetrics
    from pennon.dataset.delta import DatasetDelta as DatasetDelta
    from pennon.dataset.fragment import LanceFragment as LanceFragment
    from pennon.dataset.indices import IndexConfig as IndexConfig
    from pennon.dataset.lance_dataset import LanceDataset as LanceDataset
    from pennon.dataset.maintenance import DatasetOptimizer as DatasetOptimizer
    from pennon.dataset.merge_insert import MergeInsertBuilder as MergeInsertBuilder
    from pennon.dataset.metadata import DataFile as DataFile
    from pennon.dataset.metadata import FragmentMetadata as FragmentMetadata
    from pennon.dataset.open import dataset as dataset
    from pennon.dataset.open import parse_time as parse_time
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
    from pennon.dataset.transactions import BulkCommitResult as BulkCommitResult
    from pennon.dataset.udf import BatchUDF as BatchUDF
    from pennon.dataset.udf import batch_udf as batch_udf
    from pennon.dataset.vector_reader import VectorIndexReader as VectorIndexReader
    from pennon.dataset.versions import Version as Version
    from pennon.dataset.versions import VersionRef as VersionRef
    from pennon.dataset.write_options import AutoCleanupConfig as AutoCleanupConfig
    from pennon.scan.plan.query import ColumnOrdering as ColumnOrdering
    from pennon.scan.session import Session as Session
    from pennon.schema.lance_schema import LanceSchema as LanceSchema

__all__ = [
    "LANCE_COMMIT_MESSAGE_KEY",
    "AlterColumn",
    "AutoCleanupConfig",
    "BatchUDF",
    "BlobFile",
    "Branch",
    "Branches",
    "BulkCommitResult",
    "ColumnOrdering",
    "Compaction",
    "CompactionMetrics",
    "DataFile",
    "DatasetDelta",
    "DatasetOptimizer",
    "DeleteResult",
    "FragmentMetadata",
    "Index",
    "IndexConfig",
    "IndexFile",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LanceSchema",
    "MergeInsertBuilder",
    "ScannerBuilder",
    "Session",
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
    "write_dataset",
]

__getattr__ = _lazy_names(__name__, frozenset(__all__))
