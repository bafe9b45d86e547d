"""FLAT, SQ, PQ and RQ: how an index stores vectors, and compares queries with them."""
