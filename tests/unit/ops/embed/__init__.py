"""Embeddings: models, fingerprints, notes."""
