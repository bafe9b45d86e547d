"""Fragments of a table, with the names of ``lance.fragment``."""

from __future__ import annotations

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
from pennon.dataset.row_id_sequence import RowIdSequence

__all__ = [
    "DEFAULT_MAX_BYTES_PER_FILE",
    "DataFile",
    "DeletionFile",
    "FragmentMetadata",
    "FragmentSession",
    "LanceFragment",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RowIdSequence",
    "write_fragments",
]
