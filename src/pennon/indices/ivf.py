"""The centroids of an index of vectors, with the names of ``lance.indices.ivf``."""

from __future__ import annotations

from pennon.dataset.vector_models import IvfModel

__all__ = ["IvfModel"]
