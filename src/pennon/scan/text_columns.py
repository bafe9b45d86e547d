"""A column whose texts are searched: its index, the rows that the index covers, and those it does not.

::

    segment 1     fragments 0, 1          of their rows those that are alive, and pass the filter
    segment 2     fragment 2
    no segment    fragments 3, 4          their texts are read, and searched as a partition in memory

Rows that no segment covers are scored by the statistics of all, those of segments by the segments' alone, as
pylance scores them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.cached_property import lazy
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FragmentId
from pennon.errors import ArgumentError, NotFoundError, UnsupportedError
from pennon.index.files import IndexFiles
from pennon.index.moved_rows import MovedRows
from pennon.index.row_set import Numbers, RowSet
from pennon.index.text.arrays import Words
from pennon.index.text.bm25 import Statistics
from pennon.index.text.documents import Reader, is_json, is_text
from pennon.index.text.inverted import Inverted
from pennon.index.text.matching import Searched, Seen
from pennon.index.text.memory_partition import MemoryPartition
from pennon.index.text.parameters import WITHOUT_INDEX
from pennon.index.text.partition import Partition
from pennon.index.text.queries import DocumentGranularity
from pennon.index.text.terms import Fuzziness, Term, find_terms
from pennon.index.text.tokenizer import Placed
from pennon.scan.deletion_mask import NONE_DELETED
from pennon.scan.filter import Predicate
from pennon.scan.filter_exec import read_query, read_query_batches
from pennon.scan.fragment_reader import FragmentReader
from pennon.scan.index_lookup import remember_parts
from pennon.scan.moved_rows import covered_now, moved_rows
from pennon.scan.projection import MetaColumn
from pennon.scan.query import ScanOptions, bind_query, plan_query
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.project import resolve
from pennon.table.fragment import Fragment
from pennon.table.indices import SYSTEM, Index
from pennon.table.indices_wire import parse_indices

_DETAILS: Final = "InvertedIndexDetails"
_NEWEST: Final = 3
_BATCH_ROWS: Final = 8192


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows of a version that a search may find: of some fragments, that pass a condition."""

    snapshot: Snapshot
    predicate: Predicate | None = None
    fragments: tuple[Fragment, ...] | None = None
    is_fast: bool = False
    """Just what indices cover is searched."""

    @property
    def searched(self) -> Sequence[Fragment]:
        """Return the fragments."""
        return self.snapshot.manifest.fragments if self.fragments is None else self.fragments

    def passing(self, fragments: Sequence[Fragment]) -> RowSet:
        """Return the addresses of those rows of fragments that are alive and pass the condition."""
        if self.predicate is None:
            return RowSet.of_ranges(*_alive(self.snapshot, fragments))
        options = ScanOptions(columns=(), predicate=self.predicate, with_row_address=True)
        query = plan_query(bind_query(self.snapshot, options), fragments)
        found = read_query(query).column(MetaColumn.ROW_ADDRESS.value).to_numpy()
        return RowSet.of(np.asarray(found, np.uint64))

    def texts(
        self, column: str, fragments: Sequence[Fragment]
    ) -> Iterator[tuple[Numbers, pa.Array]]:
        """Yield the values of a column of rows that pass the condition, behind their addresses."""
        options = ScanOptions(columns=(column,), predicate=self.predicate, with_row_address=True)
        query = plan_query(bind_query(self.snapshot, options), fragments)
        for batch in read_query_batches(query, _BATCH_ROWS):
            addresses = batch.column(MetaColumn.ROW_ADDRESS.value)
            yield np.asarray(addresses.to_numpy(), np.uint64), batch.column(0)


def _alive(snapshot: Snapshot, fragments: Sequence[Fragment]) -> tuple[Numbers, Numbers]:
    starts, lasts = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for fragment in fragments:
        live = FragmentReader(snapshot, fragment).live_rows()
        rows = live.between(0, live.count).ranges()
        first = np.uint64(fragment.id << 32)
        starts.append(rows.starts.astype(np.uint64) + first)
        lasts.append(rows.ends.astype(np.uint64) + first - np.uint64(1))
    return np.concatenate(starts), np.concatenate(lasts)


# --- indices --------------------------------------------------------------------------------------


def text_paths(snapshot: Snapshot) -> list[str]:
    """Return the columns that have a full-text index, in the order of their fields."""
    fields = {field_id for each in _text_indices(snapshot) for field_id in each.field_ids}
    table = snapshot.manifest.schema
    return [path for path, field_id in _paths(table.fields) if field_id in fields]


def _paths(fields: Sequence[object], prefix: str = "") -> Iterator[tuple[str, int]]:
    for field in fields:
        name = f"{prefix}{field.name}"  # type: ignore[attr-defined]
        yield name, field.id  # type: ignore[attr-defined]
        yield from _paths(field.children, f"{name}.")  # type: ignore[attr-defined]


def _text_indices(snapshot: Snapshot) -> tuple[Index, ...]:
    if not snapshot.manifest.indices:
        return ()

    def find() -> tuple[Index, ...]:
        indices = parse_indices(snapshot.manifest.indices)
        return tuple(each for each in indices if _is_text_index(snapshot, each))

    return snapshot.remember("text indices", find)


def _is_text_index(snapshot: Snapshot, index: Index) -> bool:
    if len(index.field_ids) != 1 or index.name in SYSTEM:
        return False
    if index.details is not None:
        return index.type_name == _DETAILS and index.index_version <= _NEWEST
    try:  # releases up to 0.19 do not say of what kind an index is
        snapshot.open_index_file(f"{index.folder}/tokens.lance")
    except (NotFoundError, UnsupportedError):
        return False
    return True


class TextColumn:
    """A column, as one query sees it: statistics and rows do not change meanwhile."""

    def __init__(
        self, scope: Scope, path: str, granularity: DocumentGranularity | None = None
    ) -> None:
        """Find the index.  Raises ArgumentError for a column that is not there, or has no texts."""
        self._scope, self.path = scope, path
        try:
            field = resolve(scope.snapshot.manifest.schema, path)[-1]
        except ArgumentError:
            message = f"FTS field path '{path}' does not exist in the dataset schema"
            raise ArgumentError(message) from None
        kind = field_to_arrow(field).type
        if not is_text(kind):
            message = (
                f"FTS field '{path}' must resolve to Utf8, LargeUtf8, Utf8View, or JSON, got {kind}"
            )
            raise ArgumentError(message)
        self._segments = _segments(scope.snapshot, field.id, granularity)
        parameters = self._opened[0].parameters if self._opened else WITHOUT_INDEX
        by_item = granularity is DocumentGranularity.LIST_ELEMENT
        if self._opened and granularity is None:
            by_item = self._opened[0].by_item
        self.reader = Reader(parameters, is_json(kind), by_item)

    @property
    def has_index(self) -> bool:
        """Return whether there is an index."""
        return bool(self._segments)

    @lazy
    def _opened(self) -> list[Inverted]:
        return [_open(self._scope.snapshot, each) for each in self._segments]

    @lazy
    def covered(self) -> frozenset[FragmentId]:
        """Return the fragments that the index covers."""
        found: frozenset[FragmentId] = frozenset()
        snapshot = self._scope.snapshot
        return found.union(*(covered_now(snapshot, each) for each in self._segments))

    @lazy
    def uncovered(self) -> list[Fragment]:
        """Return the fragments whose texts have to be read."""
        if self._scope.is_fast:
            return []
        return [each for each in self._scope.searched if each.id not in self.covered]

    def asked(self, query: str) -> list[Placed]:
        """Return the tokens of a query."""
        return self.reader.asked(query)

    def search(
        self, asked: Sequence[Placed], fuzziness: Fuzziness, *, places: bool = False
    ) -> Iterator[tuple[Searched, list[Term]]]:
        """Yield the partitions, and the terms that each has of a query."""
        if places and self._opened and not self._has_positions:
            message = (
                "position is not found but required for phrase queries, try recreating the index with "
                f"position: {self.path}"
            )
            raise ArgumentError(message)
        found = [
            (view, at, partition, find_terms(partition, asked, fuzziness, places=places))
            for opened, view in zip(self._opened, self._views, strict=True)
            for at, partition in enumerate(opened.partitions)
        ]
        known = self._statistics([(each, terms) for _, _, each, terms in found])
        for view, at, partition, terms in found:
            if terms:
                yield view.searched(at, partition, known), terms
        rest = self._rest
        terms = find_terms(rest, asked, fuzziness, places=places)
        if terms:
            known = known.and_(self._statistics([(rest, terms)]))
            yield _all_of(rest, known), terms

    @property
    def _has_positions(self) -> bool:
        return all(each.parameters.with_position for each in self._opened)

    def partitions(self) -> Iterator[tuple[Partition, Searched]]:
        """Yield all partitions, with what may be found of each; without statistics."""
        nothing = Statistics(0, 0, {})
        for opened, view in zip(self._opened, self._views, strict=True):
            for at, each in enumerate(opened.partitions):
                yield each, view.searched(at, each, nothing)
        yield self._rest, _all_of(self._rest, nothing)

    @staticmethod
    def _statistics(found: Sequence[tuple[Partition, Sequence[Term]]]) -> Statistics:
        having: dict[str, int] = {}
        for _, terms in found:
            for token, count in {term.token: term.postings.count for term in terms}.items():
                having[token] = having.get(token, 0) + count
        documents = sum(len(each.row_ids) for each, _ in found)
        return Statistics(documents, sum(each.token_count for each, _ in found), having)

    @lazy
    def _views(self) -> list[_View]:
        scope = self._scope
        found = []
        for segment in self._segments:
            ids = covered_now(scope.snapshot, segment)
            mine = [each for each in scope.searched if each.id in ids]
            found.append(_View(scope, tuple(mine), segment))
        return found

    @lazy
    def _rest(self) -> MemoryPartition:
        made = MemoryPartition()
        for addresses, values in self._texts():
            for document in self.reader.documents(values):
                made.add(int(addresses[document.row]), document)
        return made

    def _texts(self) -> Iterator[tuple[Numbers, pa.Array]]:
        if self.uncovered:
            yield from self._scope.texts(self.path, self.uncovered)


def _segments(
    snapshot: Snapshot, field_id: int, granularity: DocumentGranularity | None
) -> list[Index]:
    """Return the segments of the index that is asked: of several, the first by name that fits."""
    named: dict[str, list[Index]] = {}
    for index in _text_indices(snapshot):
        if index.field_ids[0] == field_id:
            named.setdefault(index.name, []).append(index)
    kinds: dict[bool, list[Index]] = {}
    for name in sorted(named):
        kinds.setdefault(_open(snapshot, named[name][0]).by_item, named[name])
    if granularity is not None:
        return kinds.get(granularity is DocumentGranularity.LIST_ELEMENT, [])
    if len(kinds) > 1:
        message = "the column has indices of rows and of list elements: document_granularity says which one is asked"
        raise ArgumentError(message)
    return next(iter(kinds.values()), [])


def _open(snapshot: Snapshot, segment: Index) -> Inverted:
    remember = remember_parts(snapshot)
    files = IndexFiles(segment.folder, snapshot.open_index_file, remember)
    return remember(("index", segment.folder), lambda: Inverted(files), lambda it: it.size_bytes)


# --- rows -----------------------------------------------------------------------------------------


class _View:
    """Which documents of a segment are rows that may be found, and their addresses."""

    def __init__(self, scope: Scope, fragments: tuple[Fragment, ...], segment: Index) -> None:
        self._scope, self._fragments, self._folder = scope, fragments, segment.folder
        has_ids = scope.snapshot.manifest.has_stable_row_ids
        self._by_row_ids = has_ids and segment.goes_by_row_ids

    def searched(self, at: int, partition: Partition, statistics: Statistics) -> Searched:
        """Return the partition of that place as it is searched."""
        is_known = self._scope.predicate is None
        seen = partial(self._seen, at, partition)
        return Searched(partition, statistics, partial(self.see, partition), seen, is_known)

    def _seen(self, at: int, partition: Partition) -> Seen:
        """Return which documents may be found."""

        def find() -> Seen:
            return Seen.of(*self.see(partition, np.arange(len(partition.row_ids), dtype=np.uint32)))

        if self._scope.predicate is not None:
            return find()
        key = "seen texts", self._folder, at, tuple(each.id for each in self._fragments)
        return self._scope.snapshot.remember(key, find)

    def see(self, partition: Partition, docs: Words) -> tuple[npt.NDArray[np.bool_], Numbers]:
        """See `pennon.index.text.matching.See`."""
        rows = partition.row_ids[docs]
        if not self._by_row_ids:
            return self._see_addresses(rows)
        ids, addresses = self._known
        if not len(ids):
            return np.zeros(len(docs), np.bool_), np.empty(0, np.uint64)
        at = np.minimum(np.searchsorted(ids, rows), len(ids) - 1)
        is_seen = (ids[at] == rows) & self._rows.contains(addresses[at])
        return is_seen, addresses[at[is_seen]]

    def _see_addresses(self, old: Numbers) -> tuple[npt.NDArray[np.bool_], Numbers]:
        rows, is_seen = self._moved.numbers(old, self._alive)
        is_found = self._rows.contains(rows)
        is_seen[is_seen] = is_found
        return is_seen, rows[is_found]

    @lazy
    def _moved(self) -> MovedRows:
        return moved_rows(self._scope.snapshot)

    @lazy
    def _alive(self) -> frozenset[FragmentId]:
        return frozenset(each.id for each in self._scope.snapshot.manifest.fragments)

    @lazy
    def _rows(self) -> RowSet:
        scope = self._scope
        if scope.predicate is not None:
            return scope.passing(self._fragments)
        key = "rows of text", tuple(each.id for each in self._fragments)
        return scope.snapshot.remember(key, lambda: scope.passing(self._fragments))

    @lazy
    def _known(self) -> tuple[Numbers, Numbers]:
        key = "row ids of text", tuple(each.id for each in self._fragments)
        return self._scope.snapshot.remember(key, self._find_known)

    def _find_known(self) -> tuple[Numbers, Numbers]:
        """Return the stable ids of all live rows, sorted, and the rows' addresses."""
        snapshot = self._scope.snapshot
        ids, addresses = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
        for fragment in self._fragments:
            live = FragmentReader(snapshot, fragment).live_rows()
            rows = live.between(0, live.count).physical() if live.count else NONE_DELETED
            ids.append(snapshot.row_ids(fragment, live.physical_rows)[rows].astype(np.uint64))
            addresses.append(rows.astype(np.uint64) | np.uint64(fragment.id << 32))
        known = np.concatenate(ids)
        order = np.argsort(known, kind="stable")
        return known[order], np.concatenate(addresses)[order]


def _all_of(partition: MemoryPartition, statistics: Statistics) -> Searched:
    """Return a partition all of whose documents may be found."""
    see = partial(_see_all, partition)

    def seen() -> Seen:
        return Seen.of(*see(np.arange(len(partition), dtype=np.uint32)))

    return Searched(partition, statistics, see, seen)


def _see_all(partition: MemoryPartition, docs: Words) -> tuple[npt.NDArray[np.bool_], Numbers]:
    return np.ones(len(docs), np.bool_), partition.row_ids[docs]
