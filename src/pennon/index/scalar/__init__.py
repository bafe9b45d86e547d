"""Scalar indices: one column's values, and the rows that have them."""
