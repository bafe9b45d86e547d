"""Changing rows: delete, update, merge."""
