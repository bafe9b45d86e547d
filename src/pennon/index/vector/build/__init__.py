"""Builds of vector indices: training, partitions, shuffles, graphs, merges."""
