"""Kinds of indices, and those of vectors made step by step, with the names of ``lance.indices``."""

from __future__ import annotations

from enum import StrEnum

from pennon.dataset.index_builder import IndicesBuilder
from pennon.dataset.index_descriptions import (
    IndexSegment,
    IndexSegmentDescription,
    SupportedDistributedIndices,
)
from pennon.dataset.indices import IndexConfig
from pennon.dataset.vector_models import IvfModel, PqModel

__all__ = [
    "IndexConfig",
    "IndexFileVersion",
    "IndexSegment",
    "IndexSegmentDescription",
    "IndicesBuilder",
    "IvfModel",
    "PqModel",
    "SupportedDistributedIndices",
]


class IndexFileVersion(StrEnum):
    """The layouts of an index of vectors: one file with stages, and two with global buffers (Pennon writes these)."""

    LEGACY = "Legacy"
    V3 = "V3"
