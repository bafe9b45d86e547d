"""File version 0.1: plain, variable-length binary and dictionary encodings."""
