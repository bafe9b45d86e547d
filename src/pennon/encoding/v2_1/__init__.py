"""File versions 2.1 and 2.2: adaptive structural encodings."""
