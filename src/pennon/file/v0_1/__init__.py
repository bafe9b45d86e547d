"""Columns of data files of version 0.1."""
