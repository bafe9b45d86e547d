"""Compaction: the same rows in fewer, fuller fragments."""
