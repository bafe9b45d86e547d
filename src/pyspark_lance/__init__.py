"""Where Spark looks for ``format("lance")``."""

from pennon.spark.source.data_source import LanceDataSource as DefaultSource

__all__ = ["DefaultSource"]
