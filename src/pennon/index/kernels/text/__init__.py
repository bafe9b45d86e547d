"""Compiled loops of full-text indices: tokens, posting lists, BM25."""
