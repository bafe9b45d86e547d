"""Compiled loops of conditions."""
