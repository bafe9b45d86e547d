"""Looking for NULLs in a column that is to be never NULL.

A NULL counts where all structs and lists around it are there: below a NULL struct there is no value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pennon.errors import InvalidSchemaError
from pennon.ops.columns.task import rows_at_once
from pennon.scan.projection import plan_take_projection
from pennon.scan.read.execute import Scan, read_batches
from pennon.scan.read.tasks import plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Field
from pennon.schema.project import quoted, resolve


def check_no_nulls(snapshot: Snapshot, path: str) -> None:
    """Raise InvalidSchemaError if a live row has a NULL at a path; the whole column is read.

    Raises ArgumentError for a column that is not there.
    """
    schema = snapshot.shown_schema
    along = resolve(schema, path)
    is_in_map = any(field.logical_type == "map" for field in along)
    read = quoted(along[0].name) if is_in_map else path
    projection = plan_take_projection(schema, [read])
    scan = Scan(snapshot, projection, tuple(plan_tasks(snapshot)))
    for batch in read_batches(scan, rows_at_once(projection.arrow)):
        if _values_at(batch.column(0), along).null_count:
            message = f'Column "{path}" contains NULL values and cannot be made non-nullable'
            raise InvalidSchemaError(message)


def _values_at(array: pa.Array[Any], along: Sequence[Field]) -> pa.Array[Any]:
    """Return the values of the last field along a path, of rows in which all fields before it are there."""
    for field in along[1:]:
        there = array.storage if isinstance(array, pa.ExtensionArray) else array
        if there.null_count:
            there = there.drop_null()
        if isinstance(there, pa.StructArray):
            array = there.field(field.name)
        elif isinstance(there, pa.MapArray):
            array = _entries(there, field)
        else:
            array = there.flatten()
    return array


def _entries(maps: pa.MapArray, field: Field) -> pa.StructArray:
    """Return keys and values of maps without NULL maps, under the names that ``field`` has for them."""
    names = [child.name for child in field.children]
    pairs = pa.StructArray.from_arrays([maps.keys, maps.items], names)
    start, end = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
    return pairs.slice(start, end - start)
