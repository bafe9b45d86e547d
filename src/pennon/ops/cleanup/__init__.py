"""Clean-up: old versions, and files that no version names."""
