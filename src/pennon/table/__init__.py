"""The table format: manifests, transactions, commits, deletions, row ids."""
