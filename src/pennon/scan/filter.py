"""Filters as pyarrow expressions, applied to what was read.

DuckDB and Polars hand their simple conditions over as `pyarrow.compute.Expression`.  Nothing is
skipped by them yet: the columns that they name are read, rows that fail are dropped, and then the
columns that were asked for are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import ArgumentError


def columns_of(expression: pc.Expression, schema: pa.Schema) -> list[str]:
    """Return the columns of ``schema`` that an expression needs.

    pyarrow does not say which these are, so it is asked: a column is needed if the expression
    cannot be applied to an empty table without it.  Only names that occur in the expression's text
    are tried.

    Raises ArgumentError if the expression cannot be applied to the schema at all.
    """
    text = str(expression)
    likely = [name for name in schema.names if name in text]
    candidates = likely if _applies(expression, schema, likely) else list(schema.names)
    if not _applies(expression, schema, candidates):
        message = f"the filter {text} does not fit the columns {', '.join(schema.names)}"
        raise ArgumentError(message)
    return [
        name
        for name in candidates
        if not _applies(expression, schema, [other for other in candidates if other != name])
    ]


def _applies(expression: pc.Expression, schema: pa.Schema, names: Sequence[str]) -> bool:
    try:
        pa.schema([schema.field(name) for name in names]).empty_table().filter(expression)
    except (pa.ArrowException, ValueError, TypeError):
        return False
    return True


def filter_batches(
    batches: Iterable[pa.RecordBatch],
    expression: pc.Expression,
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """Yield what passes of each batch, with the columns of ``schema``; empty ones are left out."""
    for batch in batches:
        kept = pa.Table.from_batches([batch]).filter(expression).select(schema.names)
        for part in kept.combine_chunks().to_batches():
            if part.num_rows:
                yield part.replace_schema_metadata(schema.metadata)


def limit_batches(
    batches: Iterable[pa.RecordBatch], offset: int, limit: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows after the first ``offset``, at most ``limit``; stops reading when full."""
    for batch in batches:
        if limit is not None and limit <= 0:
            return
        part = batch.slice(min(offset, batch.num_rows), limit)
        offset -= min(offset, batch.num_rows)
        limit = None if limit is None else limit - part.num_rows
        if part.num_rows:
            yield part
