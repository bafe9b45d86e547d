"""Spark: ``format("lance")`` and functions over a session."""

from pennon.spark.functions import ingest, read, write
from pennon.spark.operations import convert
from pennon.spark.session import local_session
from pennon.spark.source import LanceDataSource

__all__ = ["LanceDataSource", "convert", "ingest", "local_session", "read", "write"]
