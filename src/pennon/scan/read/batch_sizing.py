"""Batch sizing: how many rows a streamed scan decodes at once, learned from what the first ones became.

Memory is taken by what rows become, and the files do not tell: text of one word is next to nothing
in a page, and a table's narrowest column has as large a share of its files as its widest.  Columns of
one width are known beforehand.  For others the scan begins carefully, and every unit that was decoded
says how many bytes its rows take; the next ones that are planned go by that.

::

    a row        guessed, then learned: bytes of the last unit / its rows
    a unit       UNIT_BYTES of such rows, in whole batches

Rows of fragments differ; what is learned is how many times as large as in the files they become.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from pennon.core.memory import decoded
from pennon.core.thread_places import processors
from pennon.core.units import MIB
from pennon.scan.read.fragment_run import FragmentRun
from pennon.scan.read.tasks import (
    DEFAULT_BATCH_BYTES,
    LEAST_UNIT_BYTES,
    ReadTask,
    Unit,
    bytes_per_row,
)
from pennon.schema.width import has_width, row_bytes
from pennon.table.fragment import Fragment

UNIT_BYTES: Final = 2 * MIB
"""The bytes of a decoded unit.  Each thread decodes one unit, and the caller holds one.

With less it would take longer: to begin a unit costs some 30 us for each column.
"""
FAR_UNIT_BYTES: Final = 32 * MIB
"""The same of a remote store, where to begin a unit is to wait for answers."""
FIRST_GROWTH: Final = 32
"""How many times as large as in the files rows are taken to become, as long as nothing is known: those of dictionaries do."""
FIRST_FAR_GROWTH: Final = 8
"""The same of a remote store, where small first units take as long as large ones."""
REQUEST_BYTES: Final = 4 * MIB
"""Of a remote store so much of the files is read at once, unless it becomes far more."""


class BatchSizer:
    """Plans the units of one scan, and learns from those that were decoded."""

    def __init__(self, schema: pa.Schema, share: float, *, is_remote: bool) -> None:
        """Begin; ``share`` is how much of the data files is read, if all columns were alike."""
        self._least = max(row_bytes(schema), 1)
        self._is_known = all(has_width(field.type) for field in schema)
        self._share = share
        self._is_remote = is_remote
        self._growth: float | None = None
        """How many times as large as in the files rows become; None: nothing was decoded yet."""

    def row_bytes(self, fragment: Fragment | FragmentRun, guess: float | None = None) -> int:
        """Return about how many bytes a row of a fragment takes in memory; ``guess`` is its growth if none is known."""
        if self._is_known:
            return self._least
        guess = guess or (FIRST_FAR_GROWTH if self._is_remote else FIRST_GROWTH)
        return max(int(self._stored(fragment) * (self._growth or guess)), self._least)

    def learn(
        self,
        fragment: Fragment | FragmentRun,
        columns: Iterable[Sequence[pa.Array[Any]]],
        rows: int,
    ) -> None:
        """Take note of what rows became; the thread that decoded them says it."""
        size_bytes = sum(chunk.nbytes for chunks in columns for chunk in chunks)
        self._growth = max(size_bytes / max(rows, 1) / self._stored(fragment), 1e-6)
        decoded(size_bytes)

    def unit_rows(self, fragment: Fragment | FragmentRun) -> int:
        """Return how many rows of a fragment to decode at once."""
        width = self.row_bytes(fragment)
        if not self._is_remote:
            return max(UNIT_BYTES // width, 1)
        return max(min(FAR_UNIT_BYTES // width, int(REQUEST_BYTES // self._stored(fragment))), 1)

    def units(
        self, tasks: Sequence[ReadTask], batch_rows: int, *, may_cut: bool
    ) -> Iterator[tuple[Unit, int]]:
        """Yield units, and what each is expected to take, in order; each is planned when asked for.

        What is read of a remote store takes memory beside what it becomes.

        But for the last ones of tasks they are whole batches, or, if they ``may_cut`` batches that are
        larger than `DEFAULT_BATCH_BYTES`, parts of one.  There are enough for all processors, unless
        they would be very small.
        """
        workers = 1 if self._is_remote else processors()
        fair = -(-sum(task.rows for task in tasks) // workers)
        for number, task in enumerate(tasks):
            start = task.start
            while start < task.end:
                width = self.row_bytes(task.fragment)
                held = width + math.ceil(self._stored(task.fragment)) * self._is_remote
                enough = max(fair, LEAST_UNIT_BYTES // width, 1)
                batch = min(self._fitting(task.fragment), batch_rows) if may_cut else batch_rows
                rows = -(-min(self.unit_rows(task.fragment), enough) // batch) * batch
                end = min(start + rows, task.end)
                if isinstance(task.fragment, FragmentRun) and end < task.end:
                    end = task.fragment.batch_end(start, end, batch)
                yield Unit(number, start, end), (end - start) * held
                start = end

    def _fitting(self, fragment: Fragment | FragmentRun) -> int:
        """Return how many rows a batch may have by its bytes; no guess makes batches smaller."""
        return max(DEFAULT_BATCH_BYTES // self.row_bytes(fragment, guess=1), 1)

    def _stored(self, fragment: Fragment | FragmentRun) -> float:
        return max(bytes_per_row(fragment) * self._share, 1e-3)
