"""Indices of vectors: one kind, one file; what a search asks of them; distances."""
