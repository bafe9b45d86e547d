"""Kinds of indices, with the names of ``lance.indices``."""

from __future__ import annotations

from pennon.dataset.indices import IndexConfig

__all__ = ["IndexConfig"]
