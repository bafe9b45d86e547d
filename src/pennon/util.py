"""Clusters and graphs of vectors, and a check of an index, with the names of ``lance.util``."""

from __future__ import annotations

from pennon.dataset.vector_clusters import KMeans
from pennon.dataset.vector_graph import HNSW
from pennon.dataset.vector_tools import validate_vector_index

__all__ = ["HNSW", "KMeans", "validate_vector_index"]
