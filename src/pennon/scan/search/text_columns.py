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

from pennon.core.cached_property import cached_property
from pennon.core.units import FieldId, FragmentId
from pennon.errors import ArgumentError
from pennon.index.row_set import Numbers
from pennon.index.text.arrays import Words
from pennon.index.text.bm25 import Statistics
from pennon.index.text.documents import Reader, is_json, is_text
from pennon.index.text.inverted import Inverted
from pennon.index.text.kind import KIND
from pennon.index.text.matching import Searched, Seen
from pennon.index.text.memory_partition import MemoryPartition
from pennon.index.text.parameters import WITHOUT_INDEX
from pennon.index.text.partition import Partition
from pennon.index.text.queries import DocumentGranularity
from pennon.index.text.terms import Fuzziness, Term, find_terms
from pennon.index.text.tokenizer import Placed
from pennon.scan.plan.known_indices import known_indices
from pennon.scan.plan.moved_rows import covered_now
from pennon.scan.search.scope import IndexedRows, Scope
from pennon.scan.snapshot import Key, Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.project import resolve, walk_paths
from pennon.table.fragment import Fragment
from pennon.table.indices import SYSTEM, Index

_DETAILS: Final = KIND.details
_NEWEST: Final = KIND.reads
_BATCH_ROWS: Final = 8192
TEXT_INDICES: Final[Key[tuple[Index, ...]]] = Key("text indices")
TEXT_FIELD: Final[Key[tuple[FieldId, bool]]] = Key("text field")
SEGMENTS: Final[Key[tuple[Index, ...]]] = Key("text segments")
UNCOVERED: Final[Key[list[Fragment]]] = Key("fragments without text index")
SEEN: Final[Key[Seen]] = Key("texts seen")


# --- indices --------------------------------------------------------------------------------------


def text_paths(snapshot: Snapshot) -> list[str]:
    """Return the columns that have a full-text index, in the order of their fields."""
    fields = {field_id for each in _text_indices(snapshot) for field_id in each.field_ids}
    return [path for path, field in walk_paths(snapshot.manifest.schema) if field.id in fields]


def _text_indices(snapshot: Snapshot) -> tuple[Index, ...]:
    if not snapshot.manifest.indices:
        return ()

    def find() -> tuple[Index, ...]:
        return tuple(each for each in known_indices(snapshot) if _is_text_index(each))

    return snapshot.remember(TEXT_INDICES, find)


def _is_text_index(index: Index) -> bool:
    is_column = len(index.field_ids) == 1 and index.name not in SYSTEM
    return is_column and index.type_name == _DETAILS and index.index_version <= _NEWEST


class TextColumn:
    """A column, as one query sees it: statistics and rows do not change meanwhile."""

    def __init__(
        self, scope: Scope, path: str, granularity: DocumentGranularity | None = None
    ) -> None:
        """Find the index.  Raises ArgumentError for a column that is not there, or has no texts."""
        self._scope, self.path = scope, path
        field_id, holds_json = _resolve_text(scope.snapshot, path)
        self._segments = _segments(scope.snapshot, field_id, granularity)
        parameters = self._opened[0].parameters if self._opened else WITHOUT_INDEX
        by_item = granularity is DocumentGranularity.LIST_ELEMENT
        if self._opened and granularity is None:
            by_item = self._opened[0].by_item
        self.reader = Reader(parameters, holds_json, by_item)

    @property
    def has_index(self) -> bool:
        """Return whether there is an index."""
        return bool(self._segments)

    @cached_property
    def _opened(self) -> list[Inverted]:
        return [_open(self._scope.snapshot, each) for each in self._segments]

    @cached_property
    def covered(self) -> frozenset[FragmentId]:
        """Return the fragments that the index covers."""
        found: frozenset[FragmentId] = frozenset()
        snapshot = self._scope.snapshot
        return found.union(*(covered_now(snapshot, each) for each in self._segments))

    @cached_property
    def uncovered(self) -> list[Fragment]:
        """Return the fragments whose texts have to be read."""
        scope = self._scope
        if scope.is_fast:
            return []
        if scope.fragments is not None:
            return self._find_uncovered()
        folders = tuple(each.folder for each in self._segments)
        return scope.snapshot.remember(UNCOVERED, self._find_uncovered, folders)

    def _find_uncovered(self) -> list[Fragment]:
        return [each for each in self._scope.searched if each.id not in self.covered]

    def asked(self, query: str) -> list[Placed]:
        """Return the tokens of a query."""
        return self.reader.asked(query)

    def search(
        self, asked: Sequence[Placed], fuzziness: Fuzziness, *, places: bool = False
    ) -> Iterator[tuple[Searched, list[Term]]]:
        """Yield the partitions, and the terms that each has of a query."""
        for searched, (terms,) in self.search_all([(asked, fuzziness)], places=places):
            yield searched, terms

    def search_all(
        self, queries: Sequence[tuple[Sequence[Placed], Fuzziness]], *, places: bool = False
    ) -> Iterator[tuple[Searched, list[list[Term]]]]:
        """Yield the partitions that have terms of the first query, and the terms of each query."""
        if places and self._opened and not self._has_positions:
            message = (
                "position is not found but required for phrase queries, try recreating the index with "
                f"position: {self.path}"
            )
            raise ArgumentError(message)

        def find(partition: Partition) -> list[list[Term]]:
            return [
                find_terms(partition, asked, fuzziness, places=places)
                for asked, fuzziness in queries
            ]

        found = [
            (view, at, partition, find(partition))
            for opened, view in zip(self._opened, self._views, strict=True)
            for at, partition in enumerate(opened.partitions)
        ]
        known = self._statistics([(each, terms) for _, _, each, terms in found])
        for view, at, partition, terms in found:
            if terms[0]:
                yield view.searched(at, partition, known), terms
        if not self.uncovered:
            return
        rest = self._rest
        terms = find(rest)
        if terms[0]:
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
    def _statistics(found: Sequence[tuple[Partition, Sequence[Sequence[Term]]]]) -> Statistics:
        having: dict[str, int] = {}
        for _, queries in found:
            counts = {term.token: term.postings.count for terms in queries for term in terms}
            for token, count in counts.items():
                having[token] = having.get(token, 0) + count
        documents = sum(len(each.row_ids) for each, _ in found)
        return Statistics(documents, sum(each.token_count for each, _ in found), having)

    @cached_property
    def _views(self) -> list[_View]:
        return [_View(self._scope, each) for each in self._segments]

    @cached_property
    def _rest(self) -> MemoryPartition:
        made = MemoryPartition()
        for addresses, values in self._texts():
            for document in self.reader.documents(values):
                made.add(int(addresses[document.row]), document)
        return made

    def _texts(self) -> Iterator[tuple[Numbers, pa.Array]]:
        if self.uncovered:
            yield from self._scope.texts(self.path, self.uncovered)


def _resolve_text(snapshot: Snapshot, path: str) -> tuple[FieldId, bool]:
    """Return the field of a path, and whether it is JSON.  Raises ArgumentError if it has no texts."""

    def find() -> tuple[FieldId, bool]:
        try:
            field = resolve(snapshot.manifest.schema, path)[-1]
        except ArgumentError:
            message = f"FTS field path '{path}' does not exist in the dataset schema"
            raise ArgumentError(message) from None
        kind = field_to_arrow(field).type
        if not is_text(kind):
            message = (
                f"FTS field '{path}' must resolve to Utf8, LargeUtf8, Utf8View, or JSON, got {kind}"
            )
            raise ArgumentError(message)
        return field.id, is_json(kind)

    return snapshot.remember(TEXT_FIELD, find, path)


def _segments(
    snapshot: Snapshot, field_id: FieldId, granularity: DocumentGranularity | None
) -> tuple[Index, ...]:
    """Return the segments of the index that is asked: of several, the first of the manifest that fits."""
    find = partial(_find_segments, snapshot, field_id, granularity)
    return snapshot.remember(SEGMENTS, find, field_id, granularity)


def _find_segments(
    snapshot: Snapshot, field_id: FieldId, granularity: DocumentGranularity | None
) -> tuple[Index, ...]:
    named: dict[str, list[Index]] = {}
    for index in _text_indices(snapshot):
        if index.field_ids[0] == field_id:
            named.setdefault(index.name, []).append(index)
    kinds: dict[bool, tuple[Index, ...]] = {}
    for segments in named.values():
        kinds.setdefault(_open(snapshot, segments[0]).by_item, tuple(segments))
    if granularity is not None:
        return kinds.get(granularity is DocumentGranularity.LIST_ELEMENT, ())
    if len(kinds) > 1:
        message = "the column has indices of rows and of list elements: document_granularity says which one is asked"
        raise ArgumentError(message)
    return next(iter(kinds.values()), ())


def _open(snapshot: Snapshot, segment: Index) -> Inverted:
    remember = snapshot.index_parts
    files = snapshot.index_files(segment, remember)
    return remember(("index", segment.folder), lambda: Inverted(files), lambda it: it.size_bytes)


# --- rows -----------------------------------------------------------------------------------------


class _View:
    """The documents of a segment that may be found, and their addresses."""

    def __init__(self, scope: Scope, segment: Index) -> None:
        self._scope, self._segment = scope, segment

    @cached_property
    def _rows(self) -> IndexedRows:
        by_row_ids = self._segment.goes_by_row_ids
        return IndexedRows(self._scope, self._segment, by_row_ids=by_row_ids)

    def searched(self, at: int, partition: Partition, statistics: Statistics) -> Searched:
        """Return the partition of that place as it is searched."""
        is_known = self._scope.predicate is None
        seen = partial(self._seen, at, partition)
        return Searched(partition, statistics, partial(self.see, partition), seen, is_known)

    def _seen(self, at: int, partition: Partition) -> Seen:
        """Return which documents may be found."""

        def find() -> Seen:
            named = partition.row_ids
            return Seen.of(*self._rows.see(named), named)

        scope = self._scope
        if scope.predicate is not None:
            return find()
        chosen = None if scope.fragments is None else self._rows.fragment_ids
        return scope.snapshot.remember(SEEN, find, self._segment.folder, at, chosen)

    def see(self, partition: Partition, docs: Words) -> tuple[npt.NDArray[np.bool_], Numbers]:
        """See `pennon.index.text.matching.See`."""
        return self._rows.see(partition.row_ids[docs])


def _all_of(partition: MemoryPartition, statistics: Statistics) -> Searched:
    """Return a partition all of whose documents may be found."""
    see = partial(_see_all, partition)

    def seen() -> Seen:
        return Seen.of(*see(np.arange(len(partition), dtype=np.uint32)))

    return Searched(partition, statistics, see, seen)


def _see_all(partition: MemoryPartition, docs: Words) -> tuple[npt.NDArray[np.bool_], Numbers]:
    return np.ones(len(docs), np.bool_), partition.row_ids[docs]
