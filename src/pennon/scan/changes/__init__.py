"""Changes between versions of a table: rows inserted, updated and deleted."""
