"""ZONEMAP: the bounds of the values of zones, which are rows of one fragment that follow one another.

``zonemap.lance`` has a row for each zone: ``min`` and ``max`` of the values that are not NULL, ``null_count``,
``nan_count``, ``fragment_id``, ``zone_start`` (the offset in the fragment) and ``zone_length``.  A NaN counts as
greatest in ``max`` of release 14, and not at all in that of others.

Its answer is the zones in which a row may pass.  Source: reference index-scalar, 6.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.core.cached_property import cached_property
from pennon.core.units import FragmentId
from pennon.expr.prune import Bounds, Pruner, can_prune
from pennon.expr.tree import Column
from pennon.file.container.field_bounds import FieldBounds
from pennon.file.container.writer import DataFileWriter
from pennon.index.base import VALUE, Question, Values, bound_of
from pennon.index.column_types import check_values
from pennon.index.files import IndexFiles, whole_numbers
from pennon.index.kind import PLAIN_TYPES, Kind, LookupCost, Parameters, RowNames, is_plain, lazy
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.order import Keys, least_and_greatest
from pennon.index.row_set import RowSet, Selection
from pennon.index.scalar.wanted import wanted_of
from pennon.index.scalar.zones import (
    FRAGMENT,
    LENGTH,
    START,
    Zones,
    cut_zones,
    null_rows,
    null_rows_of,
    places_of,
    rows_in_zones,
    write_null_rows,
    zones_there,
)

_FILE: Final = "zonemap.lance"
_NAMES: Final = (
    "min",
    "max",
    "null_count",
    "nan_count",
    "fragment_id",
    "zone_start",
    "zone_length",
)
_ROWS: Final = "rows_per_zone"
_ZONE_ROWS: Final = 8192
_ZONES_AT_ONCE: Final = 1024
_ZONE_BYTES: Final = 500
"""What the bounds of a zone take in memory, about."""


class ZoneMap:
    """An open ZONEMAP index."""

    def __init__(self, files: IndexFiles) -> None:
        """Read the zones."""
        file = files.file(_FILE)
        self._zone_rows = file.number(_ROWS, _ZONE_ROWS)
        low, high, *numbers = file.read(_NAMES)
        nulls, nans, fragments, starts, lengths = (
            whole_numbers(each, name) for each, name in zip(numbers, _NAMES[2:], strict=True)
        )
        self.column = Column((VALUE,), low.type)
        check_values(file.source.path, "max", high.type, low.type)
        self._low, self._high, self._nulls = low, high, nulls
        self._places = fragments, starts, lengths
        self._bounds = [
            _bounds(low[at], high[at], int(nulls[at]), int(nans[at])) for at in range(len(low))
        ]
        self._zones = Zones.of(fragments, starts, lengths)

    @property
    def size_bytes(self) -> int:
        """See `ScalarIndex.size_bytes`."""
        return _ZONE_BYTES * len(self._bounds)

    @property
    def statistics(self) -> dict[str, Any]:
        """See `ScalarIndex.statistics`."""
        return {"num_zones": len(self._bounds), "rows_per_zone": self._zone_rows}

    def warm(self) -> None:
        """See `ScalarIndex.warm`."""

    def search(self, question: Question) -> Selection:
        """See `ScalarIndex.search`."""
        wanted = question.once(wanted_of)
        if wanted is not None and self._keys is not None:
            low, high = self._keys
            may = wanted.meets(low, high)
            if len(may) < len(self._bounds):
                meets, may = may, self._has_values.copy()
                may[self._is_known] = meets
            return Selection.superset(self._zones.rows(may.nonzero()[0]))
        pruner = question.once(Pruner)
        found = [at for at, each in enumerate(self._bounds) if pruner.can_match({(VALUE,): each})]
        return Selection.superset(self._zones.rows(np.array(found, np.int64)))

    @cached_property
    def _has_values(self) -> npt.NDArray[np.bool_]:
        """Return which zones have a bound."""
        has = pc.or_(self._low.is_valid(), self._high.is_valid())
        return np.array(has.to_numpy(zero_copy_only=False))

    @cached_property
    def _is_known(self) -> npt.NDArray[np.bool_]:
        """Return which zones have both bounds."""
        known = pc.and_(self._low.is_valid(), self._high.is_valid())
        return np.asarray(known.to_numpy(zero_copy_only=False))

    @cached_property
    def _keys(self) -> tuple[Keys, Keys] | None:
        """Return the bounds of the zones that have both, as keys; None if values of the type have none."""
        known = pa.array(self._is_known)
        low, high = Keys.of(self._low.filter(known)), Keys.of(self._high.filter(known))
        return None if low is None or high is None else (low, high)

    def of_fragment(self, fragment: FragmentId, rows: int) -> FieldBounds | None:
        """Return the bounds of the values of a fragment; None unless its zones hold just so many rows, side by side."""
        fragments, starts, lengths = self._places
        mine = np.flatnonzero(fragments == fragment)
        mine = mine[np.argsort(starts[mine], kind="stable")]
        ends = starts[mine] + lengths[mine]
        borders = np.concatenate([np.zeros(1, np.uint64), ends])
        if (borders[:-1] != starts[mine]).any() or not lengths[mine].all() or borders[-1] != rows:
            return None
        chosen = pa.array(mine)
        high = None if t.is_floating(self.column.type) else self._high.take(chosen)
        nulls = pa.array(self._nulls[mine])
        return FieldBounds(borders.astype(np.int64), self._low.take(chosen), high, nulls)


def _bounds(low: pa.Scalar, high: pa.Scalar, nulls: int, nans: int) -> Bounds:
    if not (low.is_valid or high.is_valid or nans):
        return Bounds(null_count=nulls, rows=nulls)
    return Bounds(low if low.is_valid else None, None if nans else bound_of(high), nulls)


def rows_named(files: IndexFiles) -> RowSet:
    """Return all rows of the zones."""
    return rows_in_zones(files.file(_FILE))


# --- making ---------------------------------------------------------------------------------------


def write_zone_map(parts: Iterable[Values], kind: pa.DataType, new: NewFiles) -> None:
    """Write the bounds of zones of values that come by ascending addresses."""
    size = new.number(_ROWS, _ZONE_ROWS)
    nulls = []
    with _file(kind, new, size) as file:
        zones = cut_zones(parts, size)
        while some := list(islice(zones, _ZONES_AT_ONCE)):
            columns = zip(*(described(zone.values) for zone in some), strict=True)
            low, high, null_counts, nan_counts = columns
            arrays = [
                pa.array(low, kind),
                pa.array(high, kind),
                pa.array(null_counts, pa.uint32()),
                pa.array(nan_counts, pa.uint32()),
                *places_of(some),
            ]
            file.write(pa.RecordBatch.from_arrays(arrays, schema=_schema(kind)))
            nulls += [null_rows(zone) for zone in some]
        write_null_rows(file, nulls)


def rewrite_zone_map(old: Sequence[OldIndex], kind: pa.DataType, new: NewFiles) -> None:
    """Write the zones of several indices whose fragments are there yet; rows must not have moved."""
    size = new.number(_ROWS, _ZONE_ROWS)
    nulls = []
    with _file(kind, new, size) as file:
        for each in old:
            source = each.files.file(_FILE)
            arrays = source.read(_NAMES)
            for name, bounds in zip(_NAMES, arrays[:2], strict=False):
                check_values(source.source.path, name, bounds.type, kind)
            there = zones_there(arrays[4], arrays[5], each.moves)
            file.write(pa.RecordBatch.from_arrays(arrays, schema=_schema(kind)).filter(there))
            nulls.append(null_rows_of(source, each.moves))
        if all(each is not None for each in nulls):
            write_null_rows(file, [each for each in nulls if each is not None])


def zone_map_parameters(files: IndexFiles) -> dict[str, int]:
    """Return the parameters that an index was made with."""
    return {_ROWS: files.file(_FILE).number(_ROWS, _ZONE_ROWS)}


@contextmanager
def _file(kind: pa.DataType, new: NewFiles, size: int) -> Iterator[DataFileWriter]:
    with new.file(_FILE, *_schema(kind)) as file:
        file.add_schema_metadata({_ROWS: str(size)})
        yield file


def _schema(kind: pa.DataType) -> pa.Schema:
    counts = [pa.field(name, pa.uint32(), nullable=False) for name in _NAMES[2:4]]
    return pa.schema(
        [pa.field("min", kind), pa.field("max", kind), *counts, FRAGMENT, START, LENGTH]
    )


def described(values: pa.Array[Any]) -> tuple[pa.Scalar, pa.Scalar, int, int]:
    """Return the least and the greatest value, the number of NULLs, and that of NaNs: NaN is then the greatest."""
    nulls, nans = values.null_count, 0
    rest = values.drop_null()
    if t.is_floating(values.type):
        is_nan = pc.is_nan(rest)
        nans = is_nan.true_count
        rest = rest.filter(pc.invert(is_nan))
    nothing = pa.scalar(None, values.type)
    low, high = least_and_greatest(rest) if len(rest) else (nothing, nothing)
    if nans:
        high = pa.scalar(math.nan, values.type)
    return low, high, nulls, nans


KIND: Final = Kind(
    name="ZoneMap",
    details="ZoneMapIndexDetails",
    user_names=("ZONEMAP",),
    names_rows_by=RowNames.ADDRESSES,
    reads=0,
    open=lambda files, _: ZoneMap(files),
    answers=lambda condition, _: can_prune(condition),
    rows_named=rows_named,
    takes=is_plain,
    types=PLAIN_TYPES,
    build=write_zone_map,
    merge=rewrite_zone_map,
    by_zones=True,
    parameters=Parameters(
        names=frozenset({_ROWS}),
        of_files=zone_map_parameters,
        to_details=lazy("details_wire", "zone_map_details"),
    ),
    may_be_json_target=True,
    lookup_cost=LookupCost.RANGE,
)
