"""Changing rows: delete and update."""
