"""ZONEMAP: the bounds of the values of zones, which are rows of one fragment that follow one another.

``zonemap.lance`` has a row for each zone: ``min`` and ``max`` of the values that are not NULL, ``null_count``,
``nan_count``, ``fragment_id``, ``zone_start`` (the offset in the fragment) and ``zone_length``.  A NaN counts as
greatest in ``max`` of release 14, and not at all in that of others.

Its answer is the zones in which a row may pass.  Source: reference index-scalar, 6.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pennon.expr.prune import Bounds, Pruner
from pennon.expr.tree import Column, Expression
from pennon.index.base import VALUE, bound_of
from pennon.index.files import IndexFiles, whole_numbers
from pennon.index.row_set import Selection
from pennon.index.scalar.zones import Zones

_ZONE_BYTES: Final = 500
"""What the bounds of a zone take in memory, about."""


class ZoneMap:
    """An open ZONEMAP index."""

    def __init__(self, files: IndexFiles) -> None:
        """Read the zones."""
        file = files.file("zonemap.lance")
        names = [
            "min",
            "max",
            "null_count",
            "nan_count",
            "fragment_id",
            "zone_start",
            "zone_length",
        ]
        low, high, *numbers = file.read(names)
        nulls, nans, fragments, starts, lengths = (
            whole_numbers(each, name) for each, name in zip(numbers, names[2:], strict=True)
        )
        self.column = Column((VALUE,), low.type)
        self._bounds = [
            _bounds(low[at], high[at], int(nulls[at]), int(nans[at])) for at in range(len(low))
        ]
        self._zones = Zones.of(fragments, starts, lengths)

    @property
    def size_bytes(self) -> int:
        """See `ScalarIndex.size_bytes`."""
        return _ZONE_BYTES * len(self._bounds)

    def search(self, condition: Expression) -> Selection:
        """See `ScalarIndex.search`."""
        pruner = Pruner(condition)
        found = [at for at, each in enumerate(self._bounds) if pruner.can_match({(VALUE,): each})]
        return Selection.superset(self._zones.rows(np.array(found, np.int64)))


def _bounds(low: pa.Scalar, high: pa.Scalar, nulls: int, nans: int) -> Bounds:
    if not (low.is_valid or high.is_valid or nans):
        return Bounds(null_count=nulls, rows=nulls)
    return Bounds(low if low.is_valid else None, None if nans else bound_of(high), nulls)
