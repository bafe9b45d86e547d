"""The vector indices that a search asks, their results, and the current addresses of the rows.

::

    segment 1     fragments 0, 1      `VectorIndex.search`, k rows times the refine factor
    segment 2     fragment 2          the same, by its own model
    no segment    fragments 3, 4      compared with each vector (`pennon.scan.search.compare_vectors`)

An index that Pennon cannot read is not asked, with a warning: its rows are compared like all others.  Source: reference
index-vector, 6.1, 6.6 and 6.8.
"""

from __future__ import annotations

import warnings
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.kernels.places import sort_few
from pennon.core.runs import run_starts
from pennon.core.units import FragmentId
from pennon.errors import (
    ArgumentError,
    ColumnTypeError,
    FormatError,
    NotFoundError,
    UnsupportedError,
)
from pennon.index.files import IndexFiles
from pennon.index.row_set import Numbers
from pennon.index.vector.base import SearchResult, VectorIndex
from pennon.index.vector.kind import KIND
from pennon.index.vector.metric import Metric, default_metric
from pennon.index.vector.search.open import open_vector_index
from pennon.index.vector.search.top_k import NOTHING, Neighbours
from pennon.scan.plan.moved_rows import covered_now
from pennon.scan.plan.vector_query import VectorColumn, VectorSearch
from pennon.scan.search.compare_vectors import Comparison
from pennon.scan.search.scope import IndexedRows, Scope
from pennon.scan.snapshot import Key, Snapshot
from pennon.schema.project import walk_paths
from pennon.table.indices import SYSTEM, Index
from pennon.table.indices_wire import parse_indices

Mask: TypeAlias = npt.NDArray[np.bool_]
_NEWEST: Final = KIND.reads
_UNUSABLE: Final = (FormatError, NotFoundError, UnsupportedError)
_OVERFETCH: Final = 10
_FEW_ROWS: Final = 4096
"""So many rows are sorted with the interpreter's lock held."""
"""So many times ``k`` vectors are asked for where a row is a list of them."""
NAMED: Final[Key[tuple[tuple[str, tuple[Index, ...]], ...]]] = Key("indices of vectors")
SEGMENT: Final[Key[_Known]] = Key("segment of vectors")


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A segment of an index, opened, and the fragments that it covers."""

    index: Index
    opened: VectorIndex
    covered: frozenset[FragmentId]


@dataclass(frozen=True, slots=True, eq=False)
class VectorIndices:
    """An index on a column, with those of its segments that can be searched by one metric."""

    name: str
    metric: Metric
    segments: tuple[Segment, ...]

    @property
    def covered(self) -> frozenset[FragmentId]:
        """Return the fragments whose rows it finds."""
        if len(self.segments) == 1:
            return self.segments[0].covered
        return frozenset[FragmentId]().union(*(each.covered for each in self.segments))


def find_index(snapshot: Snapshot, asked: VectorSearch) -> VectorIndices | None:
    """Return the index that a search asks: the first of the column that has the metric, if one is named.

    Raises FormatError for an index of other vectors than the column's.
    """
    if asked.segments is not None:
        _check_segments(snapshot, asked)
    if not asked.uses_index or not snapshot.manifest.indices:
        return None
    for name, every in _named(snapshot, asked.column):
        segments = _chosen(every, asked)
        opened = [each for each in [_opened(snapshot, s, asked) for s in segments] if each]
        metric = asked.metric or (opened[0].opened.metric if opened else None)
        fit = tuple([each for each in opened if each.opened.metric == metric])
        if fit and metric is not None:
            return VectorIndices(name, metric, fit)
    return None


def _check_segments(snapshot: Snapshot, asked: VectorSearch) -> None:
    """Raise ArgumentError for a segment that no index of the column has."""
    known = {each.uuid for _, segments in _named(snapshot, asked.column) for each in segments}
    unknown = sorted((asked.segments or frozenset()) - known)
    if unknown:
        message = (
            f"index_segments names {unknown[0]}, which is no segment of an index of column {asked.column.path!r}; "
            f"it has {', '.join(sorted(known)) or 'none'}"
        )
        raise ArgumentError(message)


def _chosen(segments: tuple[Index, ...], asked: VectorSearch) -> tuple[Index, ...]:
    if asked.segments is None:
        return segments
    return tuple(each for each in segments if each.uuid in asked.segments)


def _named(snapshot: Snapshot, column: VectorColumn) -> tuple[tuple[str, tuple[Index, ...]], ...]:
    """Return the indices of a column by their names, each with its segments."""

    def find() -> tuple[tuple[str, tuple[Index, ...]], ...]:
        named: dict[str, list[Index]] = {}
        for index in parse_indices(snapshot.manifest.indices):
            if _may_be_asked(index, column):
                named.setdefault(index.name, []).append(index)
        return tuple((name, tuple(segments)) for name, segments in named.items())

    return snapshot.remember(NAMED, find, column.field_id)


def _may_be_asked(index: Index, column: VectorColumn) -> bool:
    is_vector = index.details is None or index.is_vector
    is_of_column = index.field_ids == (column.field_id,) and index.name not in SYSTEM
    is_known = 0 <= index.index_version <= _NEWEST
    return is_vector and is_of_column and bool(index.fragment_ids) and is_known


def _opened(snapshot: Snapshot, segment: Index, asked: VectorSearch) -> Segment | None:
    """Open a segment; None, with a warning, for one that cannot be read: its rows are compared."""
    try:
        known = _known(snapshot, segment)
        opened = known.open()
    except _UNUSABLE as error:
        message = (
            f"the index {segment.name!r} of column {asked.column.path!r} is not asked, and its rows are compared: "
            f"{error}"
        )
        warnings.warn(message, UserWarning, stacklevel=2)
        return None
    _check_fit(segment, opened, asked.column)
    return Segment(segment, opened, known.covered)


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """Facts about a segment before it is opened: the fragments that it covers, and its files."""

    covered: frozenset[FragmentId]
    files: IndexFiles

    def open(self) -> VectorIndex:
        """Return the segment, opened now or before."""
        files = self.files
        key = "index", files.folder
        return files.remember(key, lambda: open_vector_index(files), lambda index: index.size_bytes)


def _known(snapshot: Snapshot, segment: Index) -> _Known:
    def find() -> _Known:
        files = snapshot.index_files(segment, snapshot.index_parts)
        return _Known(covered_now(snapshot, segment), files)

    return snapshot.remember(SEGMENT, find, segment.uuid)


def _check_fit(segment: Index, opened: VectorIndex, column: VectorColumn) -> None:
    """Raise FormatError for an index that is of other vectors than the column's."""
    if opened.dimension != column.dimension:
        where = f"the index {segment.name!r} ({segment.folder})"
        message = (
            f"{where} is of vectors of {opened.dimension} numbers, those of column {column.path!r} have "
            f"{column.dimension}; make the index anew"
        )
        raise FormatError(message)
    if opened.metric.is_of_bits != default_metric(column.element).is_of_bits:
        where = f"the index {segment.name!r} ({segment.folder})"
        message = (
            f"{where} is by {opened.metric}, which vectors of {column.element} in column {column.path!r} have no index "
            "of; make the index anew"
        )
        raise FormatError(message)


def why_not_searched(snapshot: Snapshot, segment: Index) -> str | None:
    """Return why no search asks a segment of an index of vectors; None where some do.  Opens its files."""
    paths = {field.id: path for path, field in walk_paths(snapshot.manifest.schema)}
    if len(segment.field_ids) != 1 or segment.field_ids[0] not in paths:
        return "it does not say which column it is of"
    if not 0 <= segment.index_version <= _NEWEST:
        return f"it is of version {segment.index_version}; Pennon knows those up to {_NEWEST}"
    if not segment.fragment_ids:
        return None  # it is not trained yet
    try:
        column = VectorColumn.of(snapshot.manifest.schema, paths[segment.field_ids[0]])
        _check_fit(segment, _known(snapshot, segment).open(), column)
    except (*_UNUSABLE, ColumnTypeError) as error:
        return str(error)
    return None


# --- searching ------------------------------------------------------------------------------------


def search_indices(
    indices: VectorIndices, scope: Scope, asked: VectorSearch, comparison: Comparison, k: int
) -> Neighbours:
    """Return rows near each query: ``k`` times the refine factor of each segment, with the index's distances."""
    wanted = k * (asked.refine_factor or 1)
    parts = [_search(segment, scope, asked, comparison, wanted) for segment in indices.segments]
    near = parts[0] if len(parts) == 1 else Neighbours.joined(parts)
    if asked.column.is_multi:
        return _as_one(near, len(comparison.queries)).best(wanted)
    is_once = len(parts) == 1 and _are_distinct(near)  # but an index may be damaged
    return near if is_once else distinct(near).best(wanted)


def _search(
    segment: Segment, scope: Scope, asked: VectorSearch, comparison: Comparison, wanted: int
) -> Neighbours:
    asks = _answerable(comparison)
    if not len(asks):
        return NOTHING
    are_all = len(asks) == len(comparison.queries)
    queries = comparison.queries if are_all else comparison.queries[asks]
    rows = IndexedRows(scope, segment.index, by_row_ids=True)
    probes = asked.probes(wanted, comparison.metric)
    count = wanted * _OVERFETCH if asked.column.is_multi else wanted
    may_be_any = rows.are_all
    while True:
        prefilter = None if may_be_any else lambda numbers: rows.see(numbers)[0]
        found = segment.opened.search(queries, count, probes, prefilter)
        is_seen, addresses = rows.see(found.rows)
        are_seen = len(addresses) == len(is_seen)
        if may_be_any and not are_seen:  # rows of fragments that the index does not cover any more
            may_be_any = False
            continue
        near = _near(found, None if are_seen else is_seen, addresses, asks, scope)
        if asked.refine_factor is not None:
            return near
        inside = _in_range(near, comparison)
        if asked.column.is_multi or _is_enough(near, inside, wanted, count, comparison.upper):
            near = near if inside is None else near.at(inside)
            return near if asked.column.is_multi or count == wanted else near.best(wanted)
        count *= 4


def _answerable(comparison: Comparison) -> Int64Array:
    """Return the numbers of the queries that are near to anything."""
    queries = comparison.queries
    is_right: Mask = np.asarray(np.isfinite(queries).all(1))
    if comparison.metric.normalises:
        is_right &= queries.any(1)
    return is_right.nonzero()[0]


def _near(
    found: SearchResult,
    is_seen: Mask | None,
    addresses: Numbers,
    asks: Int64Array,
    scope: Scope,
) -> Neighbours:
    queries, rows, distances = found.queries, found.rows, found.distances
    if is_seen is not None:
        queries, rows, distances = queries[is_seen], rows[is_seen], distances[is_seen]
    has_ids = scope.snapshot.manifest.has_stable_row_ids
    near = Neighbours(asks[queries], rows if has_ids else addresses, addresses, distances)
    is_none = np.isnan(distances)
    return near.at(~is_none) if is_none.any() else near


def _in_range(near: Neighbours, comparison: Comparison) -> Mask | None:
    """Return which rows are in the range that was asked for; None: any is."""
    if comparison.lower is None and comparison.upper is None:
        return None
    inside = np.ones(len(near), np.bool_)
    if comparison.lower is not None:
        inside &= near.distances >= np.float32(comparison.lower)
    if comparison.upper is not None:
        inside &= near.distances < np.float32(comparison.upper)
    return inside


def _is_enough(
    near: Neighbours, inside: Mask | None, wanted: int, count: int, upper: float | None
) -> bool:
    """Return whether to ask for more rows would find no more in the range.

    It would for a query that has too few, though the index gave all that it was asked for, none too far away.
    """
    if inside is None:
        return True
    for number in np.unique(near.queries).tolist():
        mine = near.queries == number
        is_short = int(mine.sum()) >= count and int(inside[mine].sum()) < wanted
        if is_short and (upper is None or float(near.distances[mine].max()) < upper):
            return False
    return True


def _are_distinct(near: Neighbours) -> bool:
    """Return whether each query has each row once."""
    if 0 < len(near) <= _FEW_ROWS and near.queries[0] == near.queries[-1]:
        return len(sort_few(near.addresses)[0]) == len(near)
    order = np.lexsort((near.addresses, near.queries))
    addresses, queries = near.addresses[order], near.queries[order]
    is_same = (addresses[1:] == addresses[:-1]) & (queries[1:] == queries[:-1])
    return not is_same.any()


def distinct(near: Neighbours) -> Neighbours:
    """Return each row once for a query, at its least distance: two segments may have it."""
    order = np.lexsort((near.distances, near.addresses, near.queries))
    near = near.at(order)
    return near.at(run_starts(near.queries, near.addresses))


def _as_one(near: Neighbours, queries: int) -> Neighbours:
    """Return the rows near all vectors of one query together: the sum over them, as pylance estimates it.

    A row that one of them did not find is as far from it as the last one that it found.
    """
    near = distinct(near)
    rows, places = np.unique(near.addresses, return_inverse=True)
    if not len(rows):
        return NOTHING
    each = np.full((queries, len(rows)), np.nan, np.float32)
    each[near.queries, places] = near.distances
    worst = np.fmax.reduce(each, axis=1, keepdims=True)
    total = np.where(np.isnan(each), np.nan_to_num(worst), each).sum(0, dtype=np.float32)
    ids = np.empty(len(rows), np.uint64)
    ids[places] = near.ids
    return Neighbours(np.zeros(len(rows), np.int64), ids, rows, total)
