"""Lance's own tests in Python, run with `pennon` in the place of ``lance``: ``make upstream-suite``."""
