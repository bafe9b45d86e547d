"""Embeddings: columns of vectors that a model makes of another column, kept up to date, and searched by text."""
