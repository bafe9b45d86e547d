"""Making an index: plan, tasks that each make a segment for some fragments, and those merged into one.

A task reads the column of its fragments, with the address or the stable id of each row, and writes the files of a
whole index for these fragments alone.  So a failed task costs its own part, and threads here or Spark's executors
elsewhere do the same.  Segments are merged a block at a time.  What is not committed is left for clean-up.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from pennon.core.near_names import did_you_mean
from pennon.core.units import FieldId, FragmentId
from pennon.errors import (
    ArgumentError,
    ColumnTypeError,
    FormatError,
    NoColumnError,
    UnsupportedError,
)
from pennon.index.base import Values
from pennon.index.files import IndexFiles, made_now, whole_numbers
from pennon.index.kind import ScalarKind
from pennon.index.kinds import kind_of, rows_named, scalar_kind, stores_row_ids
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.row_map import RowMap
from pennon.index.row_set import RowSet, of_fragments
from pennon.index.text.parts import STAGING, first_partition
from pennon.index.vector.build.train import Done
from pennon.ops.bars import bar, counted
from pennon.ops.run_tasks import run_tasks
from pennon.scan.plan.moved_rows import covered_now, has_all, moved_rows
from pennon.scan.projection import MetaColumn, plan_scan_projection
from pennon.scan.read.execute import READ_AHEAD_BYTES, Scan, read_batches
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import ScanTask, default_batch_rows, live_row_count, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field, Schema
from pennon.schema.project import find_path, resolve, walk_paths
from pennon.schema.types import storage_type
from pennon.schema.version import V0_1, V2_0, FileVersion
from pennon.schema.width import row_bytes
from pennon.table.fragment import Fragment
from pennon.table.indices import Index
from pennon.table.indices_wire import parse_index_bytes, rewritten, serialize_index_bytes
from pennon.table.storage_version import storage_version

SEGMENT_BYTES: Final = 512 << 20
"""About how much memory the values and row numbers of one segment take while it is made."""
_NUMBER_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """A build of index segments; it pickles.

    ``message`` is the name of its details' message, ``path`` that of the column, ``groups`` the fragments of
    each segment.  ``uuid`` names the folder of what is made in the end, None: as nothing else is named.
    ``is_part``: parts of a full-text index are made in that folder, see `pennon.index.text.parts`.
    """

    to_bytes = staticmethod(serialize_index_bytes)
    from_bytes = staticmethod(parse_index_bytes)

    snapshot: Snapshot
    name: str
    message: str
    path: str
    field_id: FieldId
    parameters: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[tuple[Fragment, ...], ...] = ()
    uuid: str | None = None
    is_part: bool = False

    @property
    def kind(self) -> ScalarKind:
        """Return the kind of the index."""
        return scalar_kind(self.message)

    @property
    def type(self) -> pa.DataType:
        """Return the type of the column."""
        return field_to_arrow(resolve(self.snapshot.manifest.schema, self.path)[-1]).type

    @property
    def storage(self) -> pa.DataType:
        """Return the type that the column is stored as."""
        return storage_type(self.type)

    @property
    def fragments(self) -> list[Fragment]:
        """Return the fragments of all groups."""
        return [each for group in self.groups for each in group]

    def in_parts(self, parts: int) -> IndexBuild:
        """Return the same with smaller groups: about so many, if there are as many fragments."""
        every = self.fragments
        rows = sum(live_row_count(self.snapshot, each) for each in every)
        if parts <= len(self.groups) or not rows:
            return self
        return replace(self, groups=tuple(groups_of(self.snapshot, every, -(-rows // parts))))

    def run(self, number: int) -> Index:
        """Make the segment of a group of fragments, and return its entry, which is not committed."""
        group = self.groups[number]
        new = self.files_of_group(number)
        self.kind.build(self.values(group), self.type, new)
        return self.entry(new, [each.id for each in group])

    def merge(self, segments: Sequence[Index]) -> Index:
        """Make one segment of several, without rows that are gone, and return its entry.

        Raises FormatError, NotFoundError or UnsupportedError if one cannot be read, or names rows by other numbers
        than the index that is made.
        """
        for each in segments:
            if (
                stores_row_ids(each) != self._by_row_ids
                and self.snapshot.manifest.has_stable_row_ids
            ):
                message = (
                    f"a segment of index {self.name!r} names rows by {_numbers_of(each)}, and is not merged with one "
                    "that does otherwise; optimize_indices(retrain=True) makes it anew"
                )
                raise UnsupportedError(message)
        new = self.new_files()
        olds = [OldIndex(self.files(each), self.kept(each)) for each in segments]
        self.kind.merge(olds, self.type, new)
        there = {each.id for each in self.snapshot.manifest.fragments}
        covered = {n for each in segments for n in carried(self.snapshot, each) if n in there}
        return self.entry(new, covered)

    def rewrite(self, segment: Index, moves: RowMap) -> Index:
        """Make a segment anew whose rows were moved, and return its entry; raises as `merge` does."""
        new = self.new_files()
        old = OldIndex(self.files(segment), moves)
        self.kind.merge([old], self.type, new)
        return self.entry(new, segment.fragment_ids or frozenset())

    def files(self, segment: Index) -> IndexFiles:
        """Return the files of a segment."""
        return self.snapshot.index_files(segment, made_now)

    def entry(self, new: NewFiles, fragment_ids: Iterable[FragmentId]) -> Index:
        """Return the entry of an index whose files were written."""
        return rewritten(
            Index(
                new.folder.split("/")[1],
                self.name,
                (self.field_id,),
                frozenset(fragment_ids),
                self.snapshot.manifest.version,
                self.index_version,
                time.time_ns() // 1_000_000,
                details=self.details,
                files=tuple(new.written),
            )
        )

    @property
    def index_version(self) -> int:
        """Return the version of the index."""
        has_ids = self.snapshot.manifest.has_stable_row_ids
        return self.kind.written_version(self.parameters, has_stable_row_ids=has_ids)

    @property
    def details(self) -> tuple[str, bytes]:
        """Return what its entry says of it, and the name of that message."""
        return self.kind.described(self.parameters)

    def new_files(self, name: str | None = None) -> NewFiles:
        """Return the folder of a new segment, of all of the index if it has no name."""
        name = name or self.uuid or str(uuid.uuid4())
        return new_folder(self.snapshot, name, self.parameters)

    def files_of_group(self, number: int) -> NewFiles:
        """Return the folder of the segment, or the part, of a group of fragments."""
        if self.is_part:
            new = self.new_files(f"{self.uuid}/{STAGING}")
            new.first_partition = first_partition(self.groups[number][0].id)
            return new
        return self.new_files(None if len(self.groups) == 1 else str(uuid.uuid4()))

    def values(self, group: Sequence[Fragment]) -> Iterator[Values]:
        """Yield the live values of fragments, with the numbers of their rows."""
        return self.values_of(self.read(plan_tasks(self.snapshot, group)))

    def values_of(self, column: Iterator[Values]) -> Iterator[Values]:
        """Return the values that are indexed, given those of the column."""
        return column

    def alike(self, segment: Index) -> IndexBuild:
        """Return the build of values of the type that a segment has."""
        del segment
        return self

    def read(
        self, tasks: Iterable[ScanTask], *, by_row_ids: bool | None = None
    ) -> Iterator[Values]:
        """Yield the live values of runs of rows, with the numbers of these.

        ``by_row_ids``: those are stable ids, and not addresses; by default as the index has them.
        """
        by_row_ids = self._by_row_ids if by_row_ids is None else by_row_ids
        numbers = MetaColumn.ROW_ID if by_row_ids else MetaColumn.ROW_ADDRESS
        projection = plan_scan_projection(self.snapshot.manifest.schema, [self.path], [numbers])
        scan = Scan(self.snapshot, projection, tuple(tasks))
        rows = default_batch_rows(row_bytes(projection.arrow))
        for batch in read_batches(scan, rows, READ_AHEAD_BYTES, may_cut=True):
            values = batch.column(0)
            if isinstance(values, pa.ExtensionArray):
                values = values.storage
            yield Values(values, whole_numbers(batch.column(1), "row numbers"))

    @property
    def _by_row_ids(self) -> bool:
        made = Index("", "", (), None, 0, self.index_version, details=(self.message, b""))
        return self.snapshot.manifest.has_stable_row_ids and stores_row_ids(made)

    def kept(self, segment: Index) -> RowMap:
        """Return where the rows of a segment are now: those of fragments that it covers and that are there."""
        covered = carried(self.snapshot, segment)
        alive = [each for each in self.snapshot.manifest.fragments if each.id in covered]
        if not (self.snapshot.manifest.has_stable_row_ids and stores_row_ids(segment)):
            kept = RowMap.keeping(of_fragments(each.id for each in alive))
            if _is_by_zones(segment):
                return kept
            return moved_rows(self.snapshot).as_one().then(kept)
        ids = [self._row_ids(each) for each in alive]
        return RowMap.keeping(RowSet.of(np.concatenate([np.empty(0, np.uint64), *ids])))

    def rows_of(self, fragment: Fragment) -> RowSet:
        """Return the numbers that the index has of the rows of a fragment."""
        return (
            RowSet.of(self._row_ids(fragment)) if self._by_row_ids else of_fragments([fragment.id])
        )

    def _row_ids(self, fragment: Fragment) -> Any:
        live = FragmentReader(self.snapshot, fragment).live_rows()
        ids = np.asarray(self.snapshot.row_ids(fragment, live.physical_rows), np.uint64)
        return np.delete(ids, live.deleted)


def _numbers_of(segment: Index) -> str:
    return "stable ids" if stores_row_ids(segment) else "addresses"


def _is_by_zones(segment: Index) -> bool:
    kind = kind_of(segment)
    return kind is not None and kind.by_zones


def carried(snapshot: Snapshot, segment: Index) -> frozenset[FragmentId]:
    """Return the fragments that a segment covers whose rows, if they are there, a merged one can take from it.

    Rows that moved are taken from where they were, but zones are not: of other rows they would be others.  So
    those of fragments that it names itself are taken; a writer may say that it covers the ones that came of them.
    """
    if not _is_by_zones(segment):
        return covered_now(snapshot, segment)
    claimed = segment.fragment_ids or frozenset()
    if not claimed or not moved_rows(snapshot).maps:
        return claimed
    named = rows_named(segment, snapshot.index_files(segment, made_now))
    alive = [each for each in snapshot.manifest.fragments if each.id in claimed]
    return frozenset(each.id for each in alive if has_all(snapshot, named, [each]))


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Makes one segment of several; it pickles."""

    to_bytes = staticmethod(serialize_index_bytes)
    from_bytes = staticmethod(parse_index_bytes)

    build: IndexBuild
    segments: tuple[Index, ...]

    def run(self, _number: int) -> Index:
        """Return the entry of the segment, which is not committed; raises as `IndexBuild.merge` does."""
        return self.build.merge(self.segments)


class Builder(Protocol):
    """The runner of the tasks of a build; it also reports the steps before them."""

    def stage(
        self, build: IndexBuild, name: str, total: int, unit: str
    ) -> AbstractContextManager[Done]:
        """Give what is called when one more unit is done of a stage of training, which is done here."""
        ...

    def segments(self, build: IndexBuild) -> Sequence[Index]:
        """Make a segment of each group of fragments."""
        ...

    def merge(self, build: IndexBuild, segments: Sequence[Index]) -> Index:
        """Make one segment of several; raises as `IndexBuild.merge` does."""
        ...


class ThreadBuilder:
    """This machine's threads."""

    @contextmanager
    def stage(self, build: IndexBuild, name: str, total: int, unit: str) -> Iterator[Done]:  # noqa: ARG002 - a bar has no unit
        """See `Builder.stage`."""
        with bar(f"index {build.name}: {name.replace('_', ' ')}") as tell:
            yield counted(tell, total)

    def segments(self, build: IndexBuild) -> Sequence[Index]:
        """See `Builder.segments`."""
        return run_tasks(build, len(build.groups), what=f"index {build.name}")

    def merge(self, build: IndexBuild, segments: Sequence[Index]) -> Index:
        """See `Builder.merge`."""
        return build.merge(segments)


THREADS: Final = ThreadBuilder()


def plan_build(
    snapshot: Snapshot,
    column: str,
    message: str,
    name: str,
    parameters: Mapping[str, Any],
    fragments: Sequence[Fragment] | None = None,
) -> IndexBuild:
    """Plan an index of all fragments, or of some.

    Raises NoColumnError, ColumnTypeError, ArgumentError for parameters that the kind does not have.
    """
    check_parameters(message, parameters)
    schema = snapshot.manifest.schema
    leaf = leaf_of(schema, column)
    arrow = field_to_arrow(leaf).type
    check_type(message, column, arrow)
    check = scalar_kind(message).parameters.check
    if check is not None:
        check(parameters, column, arrow)
    groups = groups_of_index(snapshot, leaf, message, fragments)
    path = path_of(schema, leaf)
    return IndexBuild(snapshot, name, message, path, leaf.id, dict(parameters), groups)


def check_parameters(message: str, parameters: Mapping[str, Any]) -> None:
    """Raise ArgumentError for parameters that a kind does not have, unless it checks them itself."""
    kind = scalar_kind(message)
    names = kind.parameters.names
    unknown = sorted(parameters.keys() - names)
    if unknown and kind.parameters.check is None:
        known = ", ".join(sorted(names)) or "no parameters"
        hint = did_you_mean(unknown[0], names)
        text = f"a {kind.user_names[0]} index has {known}, and no {', '.join(unknown)}{hint}"
        raise ArgumentError(text)


def check_type(message: str, column: str, arrow: pa.DataType) -> None:
    """Raise ColumnTypeError for values that a kind does not take."""
    kind = scalar_kind(message)
    if not kind.takes(storage_type(arrow)):
        text = f"{kind.user_names[0]} index column {column} must be {kind.types}, but got {arrow}"
        raise ColumnTypeError(text)


def groups_of_index(
    snapshot: Snapshot, leaf: Field, message: str, fragments: Sequence[Fragment] | None
) -> tuple[tuple[Fragment, ...], ...]:
    """Return some fragments, by default all, as they are sorted together for an index of a kind on a field."""
    chosen = snapshot.manifest.fragments if fragments is None else fragments
    value_bytes = row_bytes(pa.schema([field_to_arrow(leaf)]))
    width = value_bytes + _NUMBER_BYTES + scalar_kind(message).row_bytes
    return tuple(groups_of(snapshot, chosen, max(SEGMENT_BYTES // width, 1)))


def leaf_of(schema: Schema, column: str) -> Field:
    """Return the field that a path leads to, by names in any case if no other has them; raises NoColumnError."""
    try:
        return find_path(schema, column)[-1]
    except ArgumentError as error:
        text = f"{column} not found in schema: {error}"
        raise NoColumnError(text) from None


def leaf_of_index(schema: Schema, index: Index) -> Field:
    """Return the field that an index is of.  Raises FormatError if its entry does not name one of the schema."""
    found = {each.id: each for each in schema.walk()}
    if len(index.field_ids) != 1 or index.field_ids[0] not in found:
        text = f"the index {index.name!r} is of the fields {list(index.field_ids)}, and not of one of the table"
        raise FormatError(text)
    return found[index.field_ids[0]]


def path_of(schema: Schema, leaf: Field) -> str:
    """Return the path of a field, as users write it; `resolve` reads it back."""
    return {each.id: path for path, each in walk_paths(schema)}[leaf.id]


def files_in(snapshot: Snapshot, folder: str) -> IndexFiles:
    """Return the files of a folder that may be written again under their names: nothing is remembered of them."""
    apart = Snapshot(snapshot.store, snapshot.manifest)
    return IndexFiles(folder, apart.open_index_file, made_now)


def new_folder(snapshot: Snapshot, name: str, parameters: Mapping[str, Any]) -> NewFiles:
    """Return the folder of an index that is made."""
    return NewFiles(snapshot.store, f"_indices/{name}", file_version(snapshot), parameters)


def file_version(snapshot: Snapshot) -> FileVersion:
    """Return the version of new files of indices: that of the table's data files, but not 0.1."""
    version = storage_version(snapshot.manifest)
    return V2_0 if version == V0_1 else version


def groups_of(
    snapshot: Snapshot, fragments: Sequence[Fragment], most_rows: int
) -> Iterator[tuple[Fragment, ...]]:
    """Yield fragments that make a segment together: as many rows as are sorted at once; one group at least."""
    group: list[Fragment] = []
    rows = 0
    for fragment in fragments:
        more = live_row_count(snapshot, fragment)
        if group and rows + more > most_rows:
            yield tuple(group)
            group, rows = [], 0
        group.append(fragment)
        rows += more
    yield tuple(group)
