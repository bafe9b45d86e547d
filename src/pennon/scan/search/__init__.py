"""Searches: nearest neighbours, full text, and both together."""
