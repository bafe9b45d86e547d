"""Kinds of indices, and those of vectors made step by step, with the names of ``lance.indices``."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from pennon.dataset.index_builder import IndicesBuilder
from pennon.dataset.index_descriptions import IndexSegmentDescription
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

IndexSegment: TypeAlias = IndexSegmentDescription
"""A segment of an index: its UUID, the fragments that it covers, its version."""


class IndexFileVersion(StrEnum):
    """The layouts of an index of vectors: one file with stages, and two with global buffers (Pennon writes these)."""

    LEGACY = "Legacy"
    V3 = "V3"


class SupportedDistributedIndices(StrEnum):
    """The kinds that pylance merges from segments of several machines; Pennon merges those of every kind."""

    BTREE = "BTREE"
    INVERTED = "INVERTED"
    IVF_FLAT = "IVF_FLAT"
    IVF_PQ = "IVF_PQ"
    IVF_SQ = "IVF_SQ"
    VECTOR = "VECTOR"
