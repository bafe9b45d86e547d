"""Compiled loops of indices."""
