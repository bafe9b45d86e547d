"""Building an index of any kind: plan, train, tasks that each make a segment for some fragments, and their merge.

A task reads the column of its fragments, with the address or the stable id of each row, and writes the files of a
whole index for these fragments alone.  So a failed task costs its own part, and threads here or Spark's executors
elsewhere do the same.  Segments are merged a block at a time.  What is not committed is left for clean-up.

Functions of a kind (`pennon.index.kind.Kind`) do the work.  A class of its own (`JsonBuild`, `VectorBuild`) has a kind
that learns from the table before tasks run, or is merged otherwise; `pennon.ops.index.create` lists these classes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa

from pennon.core.units import FieldId, FragmentId
from pennon.errors import FormatError, UnsupportedError
from pennon.index.base import Values
from pennon.index.files import IndexFiles, made_now, whole_numbers
from pennon.index.kind import Kind
from pennon.index.kinds import (
    kind_called,
    kind_of,
    kind_of_any_version,
    kind_of_details,
    rows_named,
    stores_row_ids,
)
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.row_map import RowMap
from pennon.index.row_set import RowSet, of_fragments
from pennon.index.text.parts import STAGING, first_partition
from pennon.index.vector.build.train import Done
from pennon.ops.index.request import (
    IndexRequest,
    check_parameters,
    check_type,
    groups_of,
    groups_of_index,
    leaf_of,
    leaf_of_index,
    path_of,
)
from pennon.scan.plan.moved_rows import covered_now, has_all, moved_rows
from pennon.scan.projection import MetaColumn, plan_scan_projection
from pennon.scan.read.execute import READ_AHEAD_BYTES, Scan, read_batches
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import ScanTask, default_batch_rows, live_row_count, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.project import resolve
from pennon.schema.types import storage_type
from pennon.schema.version import V0_1, V2_0, FileVersion
from pennon.schema.width import row_bytes
from pennon.table.fragment import Fragment
from pennon.table.indices import Index
from pennon.table.indices_wire import (
    parse_index_bytes,
    rewritten,
    serialize_index_bytes,
)
from pennon.table.json_index_wire import json_target
from pennon.table.storage_version import storage_version


class Builder(Protocol):
    """The runner of the tasks of a build; it also reports the steps before them."""

    def stage(
        self, build: IndexBuild, name: str, total: int, unit: str
    ) -> AbstractContextManager[Done]:
        """Give what is called when one more unit is done of a stage of training, which is done here."""

    def segments(self, build: IndexBuild) -> Sequence[Index]:
        """Make a segment of each group of fragments."""

    def merge(self, build: IndexBuild, segments: Sequence[Index]) -> Index:
        """Make one segment of several; raises as `IndexBuild.merge` does."""


class Origin(Enum):
    """The source of the parameters of an index that is planned like another one."""

    FILES = auto()
    """Its files, which also have what it was trained to."""
    RETRAINED = auto()
    """Its files; the new one is trained anew."""
    DETAILS = auto()
    """The details of its entry, for files that cannot be read; the new one is trained anew."""


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

    @classmethod
    def plan(cls, wanted: IndexRequest) -> IndexBuild:
        """Plan an index, under a new name if none is given.

        Raises UnsupportedError for a kind that is not known, NoColumnError, ColumnTypeError, ArgumentError for
        parameters that the kind does not have.
        """
        kind, parameters, snapshot = kind_called(wanted.kind), wanted.parameters, wanted.snapshot
        ending = kind.parameters.name_ending(parameters)
        name = wanted.name_or_new(kind.details, wanted.indices, ending)
        return _planned(snapshot, wanted.column, kind, name, parameters, wanted.fragments)

    @classmethod
    def plan_like(
        cls,
        snapshot: Snapshot,
        like: Index,
        fragments: Sequence[Fragment] | None,
        origin: Origin = Origin.FILES,
    ) -> IndexBuild:
        """See `pennon.ops.index.create.plan_like`."""
        cls.check_entry(snapshot, like)
        kind, schema = kind_of_details(like.type_name), snapshot.manifest.schema
        path = path_of(schema, leaf_of_index(schema, like))
        found = kind.parameters.of_details(b"" if like.details is None else like.details[1])
        build = _planned(snapshot, path, kind, like.name, found, fragments)
        if origin is Origin.DETAILS:
            return build
        found = kind.parameters.of_files(build.files(like))
        return _planned(snapshot, path, kind, like.name, found, fragments)

    @classmethod
    def check_entry(cls, snapshot: Snapshot, index: Index) -> None:
        """Check that the entry of an index is of one column, and of a kind that its type has.

        Raises FormatError, UnsupportedError for a kind that Pennon does not make.
        """
        column = field_to_arrow(leaf_of_index(snapshot.manifest.schema, index)).type
        message, kind = json_target(index)[1].type_name, kind_of_any_version(index)
        if kind is None:
            text = f"the index {index.name!r} is of a kind that Pennon does not make: {message}"
            raise UnsupportedError(text)
        if not cls.fits(kind, column):
            text = f"the index {index.name!r} is of kind {message}, which no column of {column} has"
            raise FormatError(text)

    @classmethod
    def fits(cls, kind: Kind, column: pa.DataType) -> bool:
        """Return whether a column of a type can have an index of a kind."""
        return kind.takes(storage_type(column))

    @property
    def kind(self) -> Kind:
        """Return the kind of the index."""
        return kind_of_details(self.message)

    @property
    def chosen(self) -> Mapping[str, Any]:
        """Return the parameters for the functions of the kind."""
        return self.parameters

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

    def train(self, builder: Builder) -> Self:  # noqa: ARG002 - most kinds learn nothing
        """Return the same with what is learnt from the table before tasks run; the builder reports it."""
        return self

    def in_parts(self, parts: int) -> IndexBuild:
        """Return the same with smaller groups: about so many, if there are as many fragments."""
        every = self.fragments
        rows = sum(live_row_count(self.snapshot, each) for each in every)
        if parts <= len(self.groups) or not rows:
            return self
        return replace(self, groups=tuple(groups_of(self.snapshot, every, -(-rows // parts))))

    def made(self, builder: Builder) -> Index:
        """Make all segments of a trained build, merge them, and return the entry, which is not committed."""
        segments = builder.segments(self)
        return segments[0] if len(segments) == 1 else builder.merge(self, segments)

    def extended(self, like: Index, old: Sequence[Index], builder: Builder) -> Index:
        """Make one segment of old ones and of the fragments of a build, which was planned like one of the index."""
        del like
        if not old:
            return self.made(builder)
        fresh = builder.segments(self) if any(self.groups) else ()
        return builder.merge(self, [*old, *fresh])

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
        return self.kind.written_version(self.chosen, has_stable_row_ids=has_ids)

    @property
    def details(self) -> tuple[str, bytes]:
        """Return what its entry says of it, and the name of that message."""
        return self.kind.described(self.chosen)

    def new_files(self, name: str | None = None) -> NewFiles:
        """Return the folder of a new segment, of all of the index if it has no name."""
        name = name or self.uuid or str(uuid.uuid4())
        return new_folder(self.snapshot, name, self.chosen)

    def files_of_group(self, number: int) -> NewFiles:
        """Return the folder of the segment, or the part, of a group of fragments."""
        if self.is_part:
            new = self.new_files(f"{self.uuid}/{STAGING}")
            new.first_partition = first_partition(self.groups[number][0].id)
            return new
        if len(self.groups) == 1:
            return self.new_files()
        new = self.new_files(str(uuid.uuid4()))
        new.is_segment = True
        return new

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
            if is_by_zones(segment):
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


def is_by_zones(segment: Index) -> bool:
    """Return whether an index names zones of rows, whose rows a filter tests, and no rows."""
    kind = kind_of(segment)
    return kind is not None and kind.by_zones


def carried(snapshot: Snapshot, segment: Index) -> frozenset[FragmentId]:
    """Return the fragments that a segment covers whose rows, if they are there, a merged one can take from it.

    Rows that moved are taken from where they were, but zones are not: of other rows they would be others.  So
    those of fragments that it names itself are taken; a writer may say that it covers the ones that came of them.
    """
    if not is_by_zones(segment):
        return covered_now(snapshot, segment)
    claimed = segment.fragment_ids or frozenset()
    if not claimed or not moved_rows(snapshot).maps:
        return claimed
    named = rows_named(segment, snapshot.index_files(segment, made_now))
    alive = [each for each in snapshot.manifest.fragments if each.id in claimed]
    return frozenset(each.id for each in alive if has_all(snapshot, named, [each]))


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


def _planned(
    snapshot: Snapshot,
    column: str,
    kind: Kind,
    name: str,
    parameters: Mapping[str, Any],
    fragments: Sequence[Fragment] | None,
) -> IndexBuild:
    check_parameters(kind, parameters)
    schema = snapshot.manifest.schema
    leaf = leaf_of(schema, column)
    arrow = field_to_arrow(leaf).type
    check_type(kind, column, arrow)
    if kind.parameters.check is not None:
        kind.parameters.check(parameters, column, arrow)
    groups = groups_of_index(snapshot, leaf, kind, fragments)
    path = path_of(schema, leaf)
    return IndexBuild(snapshot, name, kind.details, path, leaf.id, dict(parameters), groups)
