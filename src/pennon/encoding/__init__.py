"""Pages to values: rows, read steps, blocks, and the encodings of each file version."""
