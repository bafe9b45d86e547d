"""Compiled loops of manifests and row sets."""
