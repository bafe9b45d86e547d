"""Merging data into a table by a key."""
