"""Basics that every room may use: units, byte ranges, memory, threads.  No noun of the format."""
