"""Stable row ids: sequences, and their bytes."""
