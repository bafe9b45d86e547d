"""Functions that make new columns, with the names of ``lance.udf``."""

from __future__ import annotations

from pennon.dataset.udf import BatchUDF, as_batch, batch_udf

__all__ = ["BatchUDF", "as_batch", "batch_udf"]
