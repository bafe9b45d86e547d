"""For Python processes that Spark starts in tests: PySpark is imported from where it is installed, not from its archive.

Modules of an archive are compiled anew by each process, which takes half a second.
"""

import sys

sys.path[:] = [place for place in sys.path if not place.endswith(".zip") or "pyspark" not in place]
