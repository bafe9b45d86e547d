"""Clean-up: versions that nobody needs, and files that no version names."""
