"""Clusters of vectors, and a check of an index, with the names of ``lance.util``."""

from __future__ import annotations

from pennon.dataset.vector_check import validate_vector_index
from pennon.dataset.vector_clusters import KMeans

__all__ = ["KMeans", "validate_vector_index"]
