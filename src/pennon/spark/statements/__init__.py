"""SQL statements over Lance tables: parsed here, run by `LanceTable`, builders, catalogs, and Spark."""
