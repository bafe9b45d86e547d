"""Compiled loops of vector indices: distances, heaps, graphs, RaBitQ."""
