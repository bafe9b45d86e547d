"""LanceTable: Delta's table API, its builders, views and functions."""
