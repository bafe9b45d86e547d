"""A check of an index, with the names of ``lance.util``."""

from __future__ import annotations

from pennon.dataset.vector_check import validate_vector_index

__all__ = ["validate_vector_index"]
