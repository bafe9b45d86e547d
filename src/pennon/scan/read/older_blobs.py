"""Blobs of version 1 in a column of version 2: files from before a table's column was changed.

pylance makes such tables where an append asks for files of 2.2.  Scans show one kind of
descriptions; blobs of version 1 are like those that lie in their data file.

Source: ledger F-402.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.file.container.opened_file import ReadRows
from pennon.schema.arrow import storage_field
from pennon.schema.blob import NULL_POSITION, describe_v1, is_description_v2
from pennon.schema.field import Field


def as_described_before(field: Field) -> Field:
    """Return a field with descriptions of version 1 in place of those of version 2."""
    if is_description_v2(field):
        return describe_v1(field)
    return field.with_children(as_described_before)


@dataclass(frozen=True, slots=True)
class OlderReader:
    """Reads a field of a file that has blobs of version 1, and shows them as those of version 2."""

    read: ReadRows
    field: Field

    def __call__(self, rows: Rows) -> Steps[list[pa.Array]]:
        """Return the steps that read rows."""
        chunks = yield from self.read(rows)
        return [_renewed(chunk, self.field) for chunk in chunks]


def _renewed(array: Any, field: Field) -> Any:
    if is_description_v2(field):
        return _description(array, field)
    if not pa.types.is_struct(array.type):
        return array
    parts = [array.field(number) for number in range(array.type.num_fields)]
    children = [_renewed(part, child) for part, child in zip(parts, field.children, strict=True)]
    fields = [old.with_type(child.type) for old, child in zip(array.type, children, strict=True)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _description(array: pa.StructArray, field: Field) -> pa.StructArray:
    positions, sizes = (array.field(n).fill_null(0).to_numpy() for n in range(2))
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    is_null |= (sizes == 0) & (positions == NULL_POSITION)
    rows = len(array)
    children = [
        pa.array(np.zeros(rows, np.uint8)),
        pa.array(positions),
        pa.array(sizes),
        pa.array(np.zeros(rows, np.uint32)),
        pa.array(np.full(rows, ""), pa.string()),
    ]
    fields = list(storage_field(field).type)
    return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(is_null))
