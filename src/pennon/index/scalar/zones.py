"""Zones: rows of one fragment that follow one another, of which an index knows something together."""

from __future__ import annotations

from typing import Final

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError
from pennon.index.row_set import Numbers, RowSet

_MOST: Final = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True, eq=False)
class Zones:
    """The addresses of the first and the last row of zones."""

    starts: Numbers
    lasts: Numbers

    @classmethod
    def of(cls, fragments: Numbers, starts: Numbers, lengths: Numbers) -> Zones:
        """Return zones by their fragments, the offsets of their first rows there, and their lengths.

        Raises FormatError for one that lies where no fragment has rows.
        """
        one = np.uint64(1)
        is_far = any((each > _MOST).any() for each in (fragments, starts, lengths))
        ends = starts + np.maximum(lengths, one) - one
        if is_far or (ends > _MOST).any():
            message = "a zone of an index lies where no fragment has rows"
            raise FormatError(message)
        first = fragments << np.uint64(32)
        return cls(first + starts, first + ends)

    def rows(self, numbers: Int64Array) -> RowSet:
        """Return the rows of some zones."""
        return RowSet.of_ranges(self.starts[numbers], self.lasts[numbers])
