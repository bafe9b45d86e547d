"""Cython kernels of the training room: the order of rows."""
