"""Indices of a table."""
