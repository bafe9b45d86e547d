"""Compiled loops over row ids: sets, ranges, sorting, Bloom filters."""
