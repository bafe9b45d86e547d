"""Compiled loops of file metadata and statistics."""
