"""Embedding models: registered by a name, with what they take and return; pylance has no such module."""

from __future__ import annotations

from pennon.ops.embed.models import EmbeddingModel, register_embedding

__all__ = ["EmbeddingModel", "register_embedding"]
