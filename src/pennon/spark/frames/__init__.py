"""DataFrames of scans, searches, aggregates and look-ups."""
