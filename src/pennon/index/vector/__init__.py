"""Indices of vectors: made and read; one quantiser, one file; what a search asks of them; distances."""
