"""Pennon: the Lance columnar format, files and tables, in Python.

The names here are those of pylance: a program that uses them runs after ``import pennon as lance``.
What needs more than a moment to import is imported when it is first named.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from pennon.compat.not_implemented import missing as _missing
from pennon.dataset import Session as Session
from pennon.dataset import dataset as dataset
from pennon.dataset import write_dataset as write_dataset

if TYPE_CHECKING:
    from pennon.base_paths import DatasetBasePath as DatasetBasePath
    from pennon.blob import BlobColumn as BlobColumn
    from pennon.blob import BlobFile as BlobFile
    from pennon.cleanup import CleanupCandidateFile as CleanupCandidateFile
    from pennon.cleanup import CleanupExplanation as CleanupExplanation
    from pennon.cleanup import CleanupReferencedBranch as CleanupReferencedBranch
    from pennon.cleanup import CleanupStats as CleanupStats
    from pennon.fragment import LanceFragment as LanceFragment
    from pennon.lance_dataset import LanceDataset as LanceDataset
    from pennon.merge_insert import MergeInsertBuilder as MergeInsertBuilder
    from pennon.metadata import FragmentMetadata as FragmentMetadata
    from pennon.operation import Index as Index
    from pennon.operation import LanceOperation as LanceOperation
    from pennon.operation import Transaction as Transaction
    from pennon.scanner import LanceScanner as LanceScanner
    from pennon.udf import batch_udf as batch_udf

_LATER = {
    "BlobColumn": "pennon.blob",
    "BlobFile": "pennon.blob",
    "CleanupCandidateFile": "pennon.cleanup",
    "CleanupExplanation": "pennon.cleanup",
    "CleanupReferencedBranch": "pennon.cleanup",
    "CleanupStats": "pennon.cleanup",
    "DatasetBasePath": "pennon.base_paths",
    "FragmentMetadata": "pennon.metadata",
    "Index": "pennon.operation",
    "LanceDataset": "pennon.lance_dataset",
    "LanceFragment": "pennon.fragment",
    "LanceOperation": "pennon.operation",
    "LanceScanner": "pennon.scanner",
    "MergeInsertBuilder": "pennon.merge_insert",
    "Transaction": "pennon.operation",
    "batch_udf": "pennon.udf",
}
__all__ = [
    "BlobColumn",
    "BlobFile",
    "CleanupCandidateFile",
    "CleanupExplanation",
    "CleanupReferencedBranch",
    "CleanupStats",
    "DatasetBasePath",
    "FragmentMetadata",
    "Index",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "MergeInsertBuilder",
    "Session",
    "Transaction",
    "batch_udf",
    "dataset",
    "write_dataset",
]
_MODULES = (
    "blob",
    "commit",
    "file",
    "fragment",
    "io",
    "optimize",
    "progress",
    "schema",
    "spark",
    "udf",
)


def __getattr__(name: str) -> _Any:
    if name in _LATER:
        return getattr(_import_module(_LATER[name]), name)
    if name == "__version__":
        return _import_module("importlib.metadata").version("pennon")
    if name in _MODULES:
        return _import_module(f"pennon.{name}")
    return _missing("pennon", name)
