"""Changes of a table by Spark: merges, updates, new columns, overwrites, clustering."""
