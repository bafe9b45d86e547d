"""Zones: consecutive rows of one fragment that an index summarises together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.runs import distinct
from pennon.errors import FormatError
from pennon.file.container.writer import DataFileWriter
from pennon.index.base import Values, joined
from pennon.index.files import IndexFile, whole_numbers
from pennon.index.row_map import RowMap
from pennon.index.row_set import Numbers, RowSet
from pennon.index.row_sets_wire import serialize_address_set

_MOST: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_NULL_ROWS: Final = "null_bitmap"

FRAGMENT: Final = pa.field("fragment_id", pa.uint64(), nullable=False)
START: Final = pa.field("zone_start", pa.uint64(), nullable=False)
LENGTH: Final = pa.field("zone_length", pa.uint64(), nullable=False)
"""The columns that say where zones lie; the start is an offset in the fragment."""


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


def rows_in_zones(file: IndexFile) -> RowSet:
    """Return the rows of all zones of a file."""
    places = file.read([FRAGMENT.name, START.name, LENGTH.name])
    zones = Zones.of(*(whole_numbers(each, "zones") for each in places))
    return zones.rows(np.arange(len(zones.starts)))


def cut_zones(parts: Iterable[Values], size: int) -> Iterator[Values]:
    """Yield the values of each zone: so many rows that follow one another in a fragment, or its last ones.

    Rows come by ascending addresses.
    """
    held: list[Values] = []
    for part in parts:
        whole = joined([*held, part], part.values.type)
        ends = _ends_of_fragments(whole.rows)
        start = 0
        for end in ends:
            is_last = end == len(whole.rows)
            while end - start >= size or (start < end and not is_last):
                yield _sliced(whole, start, min(start + size, end))
                start = min(start + size, end)
        held = [_sliced(whole, start, len(whole.rows))] if start < len(whole.rows) else []
    yield from held


def _ends_of_fragments(rows: Numbers) -> list[int]:
    """Return where the rows of each fragment end among addresses that ascend."""
    if not len(rows) or rows[0] >> _HALF == rows[-1] >> _HALF:
        return [len(rows)]
    return [*(np.flatnonzero(np.diff(rows >> _HALF)) + 1).tolist(), len(rows)]


def places_of(zones: Iterable[Values]) -> list[pa.Array[Any]]:
    """Return where zones lie, as `FRAGMENT`, `START` and `LENGTH` have it."""
    ends = [(int(zone.rows[0]), int(zone.rows[-1])) for zone in zones]
    return [
        pa.array([first >> 32 for first, _ in ends], pa.uint64()),
        pa.array([first & 0xFFFFFFFF for first, _ in ends], pa.uint64()),
        pa.array([last - first + 1 for first, last in ends], pa.uint64()),
    ]


def zones_there(fragments: pa.Array[Any], starts: pa.Array[Any], moves: RowMap) -> pa.Array[Any]:
    """Return which zones lie in fragments that are there yet."""
    first = whole_numbers(fragments, "fragments") << _HALF
    return pa.array(moves.numbers(first + whole_numbers(starts, "zones"))[1])


def null_rows(zone: Values) -> Numbers:
    """Return the rows of a zone whose value is NULL."""
    if not zone.values.null_count:
        return zone.rows[:0]
    found: Numbers = zone.rows[zone.values.is_null().to_numpy(zero_copy_only=False)]
    return found


def write_null_rows(file: DataFileWriter, rows: Sequence[Numbers]) -> None:
    """Write which rows are NULL, in order, as a global buffer whose number the metadata tells."""
    found = np.concatenate([np.empty(0, np.uint64), *rows])
    number = file.add_global_buffer(serialize_address_set(distinct(found)))
    file.add_schema_metadata({_NULL_ROWS: str(number)})


def null_rows_of(file: IndexFile, moves: RowMap) -> Numbers | None:
    """Return which rows of an old index are NULL; None where it does not know, as of releases up to 10."""
    found = file.row_set(_NULL_ROWS)
    return None if found is None else moves.rows(found).numbers()


def _sliced(values: Values, start: int, end: int) -> Values:
    return Values(values.values[start:end], values.rows[start:end])
