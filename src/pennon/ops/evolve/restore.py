"""Rows of a new column, with something in the places of the rows that are deleted.

All data files of a fragment have the same number of rows, deleted ones counted.  A new column is
computed for the live rows only, so the places between them are filled::

    live rows       a        b  c           physical rows 1, 2 and 5 are deleted
    new column      a  a  a  b  c  c

What stands there is never shown.  It is the value of the row before it, or NULL where a value could
be long.

Source: measured on pylance 14.0.2, which fills with some value, or with NULL in columns of text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.ranges import Int64Array
from pennon.scan.live_rows import LiveRows

ROWS_AT_ONCE: Final = 1 << 16
"""Rows of an output batch: a stretch of deleted rows may be long."""


def with_deleted_rows(
    batches: Iterable[pa.RecordBatch], live: LiveRows, *, may_be_null: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all live rows, in order, with rows in the places of deleted ones.

    ``may_be_null``: the file version keeps NULLs of all types.  There must be a live row.
    """
    if not len(live.deleted):
        yield from batches
        return
    done = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        physical = live.to_physical(np.arange(done, done + batch.num_rows))
        done += batch.num_rows
        end = live.physical_rows
        if done < live.count:
            end = int(live.to_physical(np.array([done], np.int64))[0])
        start = 0 if done == batch.num_rows else int(physical[0])
        yield from _spread(batch, physical - start, end - start, may_be_null=may_be_null)


def _spread(
    batch: pa.RecordBatch, places: Int64Array, rows: int, *, may_be_null: bool
) -> Iterator[pa.RecordBatch]:
    """Yield ``rows`` rows, those of the batch at the given places."""
    if rows == batch.num_rows:
        yield batch
        return
    sources = np.maximum(np.searchsorted(places, np.arange(rows), side="right") - 1, 0)
    is_filled = np.ones(rows, np.bool_)
    is_filled[places] = False
    for start in range(0, rows, ROWS_AT_ONCE):
        piece = slice(start, start + ROWS_AT_ONCE)
        repeated = pa.array(sources[piece])
        blank = pa.array(sources[piece], mask=is_filled[piece])
        columns = [
            column.take(blank if may_be_null and _is_blank(field) else repeated)
            for field, column in zip(batch.schema, batch.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _is_blank(field: pa.Field[Any]) -> bool:
    """Tell whether NULL is to stand in the places of deleted rows."""
    kind: Any = field.type
    while isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    is_long = (
        pa.types.is_large_list(kind)
        or pa.types.is_list(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )
    return bool(field.nullable and is_long)
