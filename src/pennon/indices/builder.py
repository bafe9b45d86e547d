"""An index of vectors made step by step, with the names of ``lance.indices.builder``."""

from __future__ import annotations

from pennon.dataset.index_builder import IndicesBuilder
from pennon.dataset.indices import IndexConfig
from pennon.dataset.vector_models import IvfModel, PqModel

__all__ = ["IndexConfig", "IndicesBuilder", "IvfModel", "PqModel"]
