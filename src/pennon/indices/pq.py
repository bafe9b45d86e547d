"""The codebook of an index of vectors, with the names of ``lance.indices.pq``."""

from __future__ import annotations

from pennon.dataset.vector_models import PqModel

__all__ = ["PqModel"]
