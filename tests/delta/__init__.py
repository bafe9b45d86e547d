"""Delta's own tests of its table in Python, run with `LanceTable` in its place: ``make delta-suite``."""
