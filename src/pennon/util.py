"""Clusters and graphs of vectors, and a check of an index, with the names of ``lance.util``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pennon.dataset.open import parse_time, td_to_micros
from pennon.dataset.vector_clusters import KMeans
from pennon.dataset.vector_graph import HNSW
from pennon.dataset.vector_tools import validate_vector_index

__all__ = ["HNSW", "KMeans", "sanitize_ts", "td_to_micros", "validate_vector_index"]


def sanitize_ts(ts: Any) -> datetime:
    """Return a time as a datetime: of a datetime, a Timestamp of pandas, or text.  Raises as `parse_time` does.

    >>> from pennon.util import sanitize_ts
    >>> sanitize_ts("2026-01-31 12:00:00")
    datetime.datetime(2026, 1, 31, 12, 0)
    """
    return parse_time(ts)
