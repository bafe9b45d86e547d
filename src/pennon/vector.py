"""Tables of vectors, with the names of ``lance.vector``."""

from __future__ import annotations

from pennon.dataset.vector_tools import vec_to_table

__all__ = ["vec_to_table"]
