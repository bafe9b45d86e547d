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
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.scan.deletion_mask import LiveRows

Mask: TypeAlias = npt.NDArray[np.bool_]
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
    is_live = np.ones(live.physical_rows, np.bool_)
    is_live[live.deleted] = False
    places = np.flatnonzero(is_live)
    done = start = 0
    for batch in batches:
        done += batch.num_rows
        end = int(places[done]) if done < len(places) else live.physical_rows
        if batch.num_rows:
            yield from _spread(batch, is_live[start:end], may_be_null=may_be_null)
            start = end


def _spread(batch: pa.RecordBatch, is_live: Mask, *, may_be_null: bool) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the batch where the mask is true, and others where it is not."""
    rows = len(is_live)
    if rows == batch.num_rows:
        yield batch
        return
    sources = np.maximum(np.cumsum(is_live, dtype=np.int64) - 1, 0)
    for start in range(0, rows, ROWS_AT_ONCE):
        piece = slice(start, start + ROWS_AT_ONCE)
        repeated = pa.array(sources[piece])
        blank = pa.array(sources[piece], mask=~is_live[piece])
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
