"""Fragments of a table, with the names of ``lance.fragment``."""

from __future__ import annotations

from pennon.compat.bitmap import Bitmap
from pennon.dataset.fragment import (
    DEFAULT_MAX_BYTES_PER_FILE,
    FragmentSession,
    LanceFragment,
    write_fragments,
)
from pennon.dataset.metadata import (
    DataFile,
    DeletionFile,
    FragmentMetadata,
    RowDatasetVersionMeta,
    RowIdMeta,
)
from pennon.dataset.progress import FragmentWriteProgress, NoopFragmentWriteProgress
from pennon.dataset.row_id_sequence import RowIdSequence
from pennon.dataset.udf import BatchUDF

__all__ = [
    "DEFAULT_MAX_BYTES_PER_FILE",
    "BatchUDF",
    "Bitmap",
    "DataFile",
    "DeletionFile",
    "FragmentMetadata",
    "FragmentSession",
    "FragmentWriteProgress",
    "LanceFragment",
    "NoopFragmentWriteProgress",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RowIdSequence",
    "write_fragments",
]
