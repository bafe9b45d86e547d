"""Versions by name: references, branches, clones, restore."""
