"""Pennon: the Lance columnar format, files and tables, in Python.

The names here are those of pylance: a program that uses them runs after ``import pennon as lance``.
What needs more than a moment to import is imported when it is first named (`pennon.names`).
"""

from importlib import import_module as _import_module
from os import environ as _environ
from typing import TYPE_CHECKING
from typing import Any as _Any

from pennon.compat.not_implemented import missing as _missing
from pennon.core.interpreter_end import check_imports_work as _check_imports_work
from pennon.dataset.open import dataset as dataset
from pennon.dataset.open import write_dataset as write_dataset
from pennon.names import HOMES as _HOMES
from pennon.scan.session import Session as Session

if TYPE_CHECKING:
    from pennon import arrow as arrow
    from pennon import bitmap as bitmap
    from pennon import blob as blob
    from pennon import commit as commit
    from pennon import debug as debug
    from pennon import doctor as doctor
    from pennon import file as file
    from pennon import fragment as fragment
    from pennon import indices as indices
    from pennon import io as io
    from pennon import log as log
    from pennon import optimize as optimize
    from pennon import progress as progress
    from pennon import pydantic as pydantic
    from pennon import query as query
    from pennon import sampler as sampler
    from pennon import schema as schema
    from pennon import spark as spark
    from pennon import udf as udf
    from pennon import util as util
    from pennon import vector as vector
    from pennon.as_lance.install import install_as_lance as install_as_lance
    from pennon.blob.file import BlobColumn as BlobColumn
    from pennon.blob.file import BlobFile as BlobFile
    from pennon.core.io_counters import bytes_read_counter as bytes_read_counter
    from pennon.core.io_counters import iops_counter as iops_counter
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
    from pennon.dataset.stats import DataStatistics as DataStatistics
    from pennon.dataset.stats import FieldStatistics as FieldStatistics
    from pennon.dataset.udf import batch_udf as batch_udf
    from pennon.log import set_logger as set_logger
    from pennon.ops.index.progress import IndexProgress as IndexProgress

    __version__: str
    from pennon.scan.metrics import ScanStatistics as ScanStatistics
    from pennon.schema.blob_type import Blob as Blob
    from pennon.schema.blob_type import BlobArray as BlobArray
    from pennon.schema.blob_type import blob_array as blob_array
    from pennon.schema.blob_type import blob_field as blob_field
    from pennon.schema.json_schema import json_to_schema as json_to_schema
    from pennon.schema.json_schema import schema_to_json as schema_to_json

__all__ = [
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobFile",
    "CleanupCandidateFile",
    "CleanupExplanation",
    "CleanupReferencedBranch",
    "CleanupStats",
    "DataStatistics",
    "DatasetBasePath",
    "FieldStatistics",
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
    "bytes_read_counter",
    "dataset",
    "install_as_lance",
    "iops_counter",
    "json_to_schema",
    "schema_to_json",
    "set_logger",
    "write_dataset",
]
_MODULES = (
    "arrow",
    "bitmap",
    "blob",
    "commit",
    "debug",
    "doctor",
    "embeddings",
    "file",
    "fragment",
    "hf",
    "indices",
    "io",
    "log",
    "namespace",
    "optimize",
    "polars",
    "progress",
    "pydantic",
    "query",
    "sampler",
    "schema",
    "spark",
    "torch",
    "training",
    "udf",
    "util",
    "vector",
)

if "LANCE_LOG" in _environ or "LANCE_LOG_FILE" in _environ:
    _import_module("pennon.log")


if not TYPE_CHECKING:  # a type checker reads the imports above

    def __getattr__(name: str) -> _Any:
        if name in __all__:
            _check_imports_work()
            return getattr(_import_module(_HOMES[name]), name)
        if name == "__version__":
            return _import_module("pennon.release").RELEASE
        if name in _MODULES:
            return _import_module(f"pennon.{name}")
        return _missing("pennon", name)
