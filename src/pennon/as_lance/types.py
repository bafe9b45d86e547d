"""Names of ``lance.types``: data that can be written."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa

from pennon.ops.source import as_reader

__all__ = ["ReaderLike"]

ReaderLike: TypeAlias = Any
"""Tables, batches, readers, datasets, scanners, frames of pandas and Polars, datasets of Hugging Face,
lists of dicts and of pydantic models, dicts of lists, iterables of batches with a schema."""


def _coerce_reader(data_obj: ReaderLike, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
    """Return data as a stream of batches; raises as `pennon.write_dataset` does."""
    return as_reader(data_obj, schema)


def _is_materialized(data_obj: ReaderLike) -> bool:
    """Say whether data is in memory as a whole, and can be read again."""
    module = type(data_obj).__module__.partition(".")[0]
    if module in {"pandas", "polars"}:
        return type(data_obj).__name__ == "DataFrame"
    return isinstance(data_obj, (pa.Table, pa.RecordBatch, dict, list))
