"""Writing a data file of version 0.1 with the row groups of another one.

All files of a fragment must have the same row groups, for readers go through them side by side.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.file.v0_1.writer import RowGroupWriter
from pennon.io.store import ObjectWriter
from pennon.schema.field import Schema


class SameGroupsWriter(RowGroupWriter):
    """Writes record batches in row groups with given borders; see `RowGroupWriter`.

    ``borders`` begin with 0, ascend, and end with the number of rows.
    """

    def __init__(self, sink: ObjectWriter, schema: Schema, borders: Int64Array) -> None:
        """Take the borders; where all groups but the last have one size, nothing is to be done."""
        sizes = np.diff(borders)
        longest = int(sizes.max(initial=1))
        super().__init__(sink, schema, max_rows_per_group=longest)
        self._ends = borders[1:] if np.any(sizes[:-1] < longest) else borders[-1:]

    def _take(self, batch: pa.RecordBatch) -> None:
        while batch.num_rows:
            at = np.searchsorted(self._ends, self._num_rows, side="right")
            end = int(self._ends[at]) if at < len(self._ends) else self._num_rows + batch.num_rows
            piece = batch.slice(0, end - self._num_rows)
            batch = batch.slice(piece.num_rows)
            super()._take(piece)
            if self._num_rows == end and self._waiting:
                self._write_groups(self._take_waiting())
