"""Pennon: the Lance columnar format, files and tables, in Python.

The names here are those of pylance: a program that uses them runs after ``import pennon as lance``.
What needs more than a moment to import is imported when it is first named (`pennon.names`).
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from pennon.compat.not_implemented import missing as _missing
from pennon.core.interpreter_end import check_imports_work as _check_imports_work
from pennon.dataset.open import dataset as dataset
from pennon.dataset.open import write_dataset as write_dataset
from pennon.names import HOMES as _HOMES
from pennon.scan.session import Session as Session

if TYPE_CHECKING:
    from pennon.blob.file import BlobColumn as BlobColumn
    from pennon.blob.file import BlobFile as BlobFile
    from pennon.dataset.cleanup import CleanupCandidateFile as CleanupCandidateFile
    from pennon.dataset.cleanup import CleanupExplanation as CleanupExplanation
    from pennon.dataset.cleanup import CleanupReferencedBranch as CleanupReferencedBranch
    from pennon.dataset.cleanup import CleanupStats as CleanupStats
    from pennon.dataset.fragment import LanceFragment as LanceFragment
    from pennon.dataset.lance_dataset import LanceDataset as LanceDataset
    from pennon.dataset.merge_insert import MergeInsertBuilder as MergeInsertBuilder
    from pennon.dataset.metadata import DatasetBasePath as DatasetBasePath
    from pennon.dataset.metadata import FragmentMetadata as FragmentMetadata
    from pennon.dataset.operation import Index as Index
    from pennon.dataset.operation import IndexFile as IndexFile
    from pennon.dataset.operation import LanceOperation as LanceOperation
    from pennon.dataset.operation import Transaction as Transaction
    from pennon.dataset.scanner import LanceScanner as LanceScanner
    from pennon.dataset.udf import batch_udf as batch_udf
    from pennon.ops.index.progress import IndexProgress as IndexProgress
    from pennon.scan.metrics import ScanStatistics as ScanStatistics
    from pennon.schema.blob_type import Blob as Blob
    from pennon.schema.blob_type import BlobArray as BlobArray
    from pennon.schema.blob_type import blob_array as blob_array
    from pennon.schema.blob_type import blob_field as blob_field

__all__ = [
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobFile",
    "CleanupCandidateFile",
    "CleanupExplanation",
    "CleanupReferencedBranch",
    "CleanupStats",
    "DatasetBasePath",
    "FragmentMetadata",
    "Index",
    "IndexFile",
    "IndexProgress",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "MergeInsertBuilder",
    "ScanStatistics",
    "Session",
    "Transaction",
    "batch_udf",
    "blob_array",
    "blob_field",
    "dataset",
    "write_dataset",
]
_MODULES = (
    "blob",
    "commit",
    "file",
    "fragment",
    "indices",
    "io",
    "optimize",
    "progress",
    "query",
    "schema",
    "spark",
    "torch",
    "training",
    "udf",
    "util",
    "vector",
)


def __getattr__(name: str) -> _Any:
    if name in __all__:
        _check_imports_work()
        return getattr(_import_module(_HOMES[name]), name)
    if name == "__version__":
        return _import_module("importlib.metadata").version("pennon")
    if name in _MODULES:
        return _import_module(f"pennon.{name}")
    return _missing("pennon", name)
