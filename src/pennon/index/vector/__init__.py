"""Vectors: partitions around centroids, and codes that are smaller than vectors."""
