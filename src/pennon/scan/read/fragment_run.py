"""Neighbouring small fragments, read as if they were one.

A table that many small writes made has very many fragments.  Whatever is done for each of them, a
plan, a call, an array, costs more than its rows do.  So a scan takes neighbours together: their rows
count through, and all of them are planned, read, tested and shown at once::

    fragments    7: rows 0..99      9: rows 0..49      12: rows 0..199
    rows         0..99              100..149           150..349

What a data file does not allow to be read together (`pennon.file.open.joinable_file`) is read fragment by
fragment, and comes out in the same place.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from threading import Lock
from typing import Final
from weakref import ReferenceType, ref

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.cached_property import cached_property
from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import in_forked_child
from pennon.core.units import ColumnIndex, FieldId
from pennon.encoding.kernels.chunk_lookup import cut_rows
from pennon.encoding.rows import FileRows, Rows
from pennon.errors import TooLargeError
from pennon.file.container.opened_file import JoinableFile, ReadRows
from pennon.file.open import joinable_alike, joinable_file, read_joined
from pennon.io.mapped import MappedReader
from pennon.scan.deletion_mask import NONE_DELETED, LiveRows
from pennon.scan.read.file_columns import FileColumns
from pennon.scan.read.fragment_reader import Chunks, FragmentReader, PreparedRead
from pennon.scan.snapshot import Key, Snapshot
from pennon.schema.field import Field
from pennon.schema.project import held_part
from pennon.table.fragment import DataFileRef, Fragment

MOST_FRAGMENTS: Final = 256
"""A run holds the files of its fragments open, and what it knows of their columns."""
MOST_HELD: Final = 16 * 1024
"""Fragments whose files all runs of a process hold open."""
MOST_COLUMNS: Final = 64
"""Columns that a run is ready to read."""
_APART: Final = -1
"""The kind of files that are read by themselves."""
_MOST_KINDS: Final = 16
RUNS: Final[Key[FragmentRun]] = Key("fragment run")


class FragmentRun:
    """Neighbouring fragments of one version: their physical rows, counted through."""

    def __init__(self, snapshot: Snapshot, fragments: Sequence[Fragment]) -> None:
        """Take fragments of a version; they say how many rows they have."""
        self.files = snapshot.apart()
        """Opens the data files; it does not remember this run, so that both go when nobody else has them."""
        self.fragments = tuple(fragments)
        rows = [each.physical_rows or 0 for each in fragments]
        self.borders: Int64Array = np.cumsum([0, *rows], dtype=np.int64)
        """The first row of each fragment, and the number of all rows at last."""
        self._columns: dict[int, tuple[Field, _Column]] = {}
        """The readers of columns, by the identity of the field."""
        self.live: LiveRows | None = None
        """Which rows are alive, once that is known."""
        self._sources: dict[tuple[int, str], MappedReader | None] = {}
        self._columns_of: dict[tuple[int, int], dict[FieldId, ColumnIndex]] = {}
        """By the lists of a manifest entry, which files of one schema share."""
        size_bytes = sum([file.size_bytes or 0 for each in fragments for file in each.files])
        self.bytes_per_row = max(size_bytes // max(int(self.borders[-1]), 1), 1)

    @classmethod
    def of(cls, snapshot: Snapshot, fragments: Sequence[Fragment]) -> FragmentRun:
        """Return the run of some fragments of a version, made now or lately by this process."""
        return snapshot.remember_run(RUNS, lambda: cls(snapshot, fragments), *map(id, fragments))

    def column(self, wanted: Field) -> _Column:
        """Return what reads a field of the fragments, made now or before."""
        HELD.touch(self)
        known = self._columns
        found = known.get(id(wanted))
        if found is not None and found[0] is wanted:
            return found[1]
        column = _Column(wanted, len(self.fragments))
        while len(known) >= MOST_COLUMNS:
            known.pop(next(iter(known)), None)
        known[id(wanted)] = wanted, column
        return column

    def let_go(self) -> None:
        """Forget what reads the columns, and the files; who reads at the moment goes on."""
        self._columns, self._sources = {}, {}

    @property
    def physical_rows(self) -> int:
        """Return how many rows there are, deleted ones counted."""
        return int(self.borders[-1])

    @cached_property
    def live_ends(self) -> Int64Array:
        """Return the number of live rows up to the end of each fragment."""
        return np.cumsum([each.num_rows or 0 for each in self.fragments], dtype=np.int64)

    def cut(self, start: int, end: int) -> list[int]:
        """Return how many of some live rows each fragment has that has any."""
        low, high = np.searchsorted(self.live_ends, [start, end - 1], side="right").tolist()
        ends = [*self.live_ends[low:high].tolist(), end]
        return [rows for a, b in pairwise([start, *ends]) if (rows := b - a)]

    def near_end(self, start: int, end: int) -> int:
        """Return where the last fragment ends that has all of its rows among live rows; ``end`` if they were far fewer.

        A page that is read in two parts costs more than one that is read whole.
        """
        number = int(np.searchsorted(self.live_ends, end, side="right"))
        border = int(self.live_ends[number - 1]) if number else 0
        return border if 2 * (border - start) >= end - start else end

    def batch_end(self, start: int, end: int, batch: int) -> int:
        """Return where the last whole batch of some live rows ends.

        Batches begin at ``start``, and anew with each fragment; the last one of a fragment has what is left of its rows.
        The rows are one batch or more.
        """
        number = int(np.searchsorted(self.live_ends, end - 1, side="right"))
        first = max(int(self.live_ends[number - 1]) if number else 0, start)
        return end if end == self.live_ends[number] else first + (end - first) // batch * batch

    @cached_property
    def ids(self) -> Int64Array:
        """Return the id of each fragment."""
        return np.array([each.id for each in self.fragments], np.int64)

    def columns_of(self, file: DataFileRef) -> dict[FieldId, ColumnIndex]:
        """Return the columns of a data file of one of the fragments."""
        key = id(file.field_ids), id(file.column_indices)
        found = self._columns_of.get(key)
        if found is None:
            found = self._columns_of.setdefault(key, FileColumns.of(file).column_of)
        return found

    def map_files(self, places: Sequence[tuple[int, DataFileRef]]) -> list[MappedReader | None]:
        """Return the bytes of data files of fragments; None for one that cannot be mapped."""
        known = self._sources
        missing = [(number, file) for number, file in places if (number, file.path) not in known]
        if missing:
            now = self.files.map_files([file for _, file in missing])
            for (number, file), source in zip(missing, now, strict=True):
                known.setdefault((number, file.path), source)  # another thread may ask, too
        return [known[number, file.path] for number, file in places]

    def parts(self, rows: Rows) -> tuple[list[int], FileRows]:
        """Return the numbers of the fragments that have rows of a range or more, and these rows of each."""
        cuts = np.array([0, len(rows.starts)], np.int64)
        found = cut_rows([self.borders], cuts, rows.starts, rows.ends)
        _, numbers, of_each, starts, ends = found
        return numbers.tolist(), FileRows(of_each, starts, ends, rows.count)


class HeldRuns:
    """The runs whose files this process holds open, those not read for longest first: maps are limited in number."""

    def __init__(self) -> None:
        self.start_again()

    def start_again(self) -> None:
        """Forget all runs; a child of a fork makes its own."""
        self._lock = Lock()
        self._runs: OrderedDict[int, ReferenceType[FragmentRun]] = OrderedDict()
        self._files = 0

    def touch(self, run: FragmentRun) -> None:
        """Note that a run is read; let go of others if all have more than `MOST_HELD` files."""
        with self._lock:
            known = self._runs.pop(id(run), None)
            self._runs[id(run)] = ref(run) if known is None else known
            if known is not None and known() is run:
                return
            self._files = sum(len(each.fragments) for each in self._alive())
            while self._files > MOST_HELD and len(self._runs) > 1:
                _, oldest = self._runs.popitem(last=False)
                found = oldest()
                if found is not None:
                    self._files -= len(found.fragments)
                    found.let_go()

    def _alive(self) -> list[FragmentRun]:
        """Return the runs that are still there; those that are gone are forgotten."""
        pairs = [(key, each()) for key, each in self._runs.items()]
        for key, run in pairs:
            if run is None:
                del self._runs[key]
        return [run for _, run in pairs if run is not None]


HELD: Final = HeldRuns()
in_forked_child(HELD.start_again)


@dataclass(frozen=True, slots=True)
class RunReader:
    """Reads columns of a run; it has the members of `FragmentReader` that a scan asks for."""

    snapshot: Snapshot
    fragment: FragmentRun

    def physical_rows(self) -> int:
        """Return the number of rows, deleted ones counted."""
        return self.fragment.physical_rows

    def live_rows(self) -> LiveRows:
        """Return which rows are alive."""
        run = self.fragment
        if run.live is None:
            run.live = self._live_rows(run)
        return run.live

    def _live_rows(self, run: FragmentRun) -> LiveRows:
        deleted = [
            LiveRows.of(each.physical_rows or 0, self.snapshot.deleted(each)).deleted + int(first)
            for each, first in zip(run.fragments, run.borders, strict=False)
            if each.deletion_file is not None
        ]
        return LiveRows(run.physical_rows, np.concatenate(deleted) if deleted else NONE_DELETED)

    def find(self, fields: Sequence[Field]) -> tuple[LiveRows, PreparedRun]:
        """Return which rows are alive, and the fields ready to be read."""
        return self.live_rows(), self.prepare(fields)

    def prepare(self, fields: Sequence[Field]) -> PreparedRun:
        """Return the fields, which are looked for in each data file when rows of it are first read."""
        columns = [self.fragment.column(each) for each in fields]
        return PreparedRun(self.fragment, tuple(columns))

    def samples(self) -> Iterator[FragmentReader]:
        """Yield readers of two fragments that stand for all."""
        fragments = self.fragment.fragments
        for each in (fragments[0], fragments[-1]):
            yield FragmentReader(self.snapshot, each)


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """Fields of a run, found in data files that are open: ready to be read, and again; see `PreparedRead`."""

    run: FragmentRun
    columns: tuple[_Column, ...]

    @property
    def is_mapped(self) -> bool:
        """Return that requests cost nothing: files of a remote store are not read as runs."""
        return True

    def read(self, rows: Rows) -> list[Chunks]:
        """Return the values of each field at the given physical rows, in order."""
        try:
            numbers, parts = self.run.parts(rows)
            return [column.read(self.run, numbers, parts) for column in self.columns]
        except TooLargeError:
            if rows.count < 2:
                raise
        half = rows.count // 2
        pieces = [self.read(rows.window(*part)) for part in ((0, half), (half, rows.count))]
        return [[*first, *rest] for first, rest in zip(*pieces, strict=True)]


class _Column:
    """A field in the fragments of a run; each is opened when rows of it are first read.

    It does not keep the run alive, which has it.
    """

    def __init__(self, wanted: Field, fragments: int) -> None:
        self._wanted = wanted
        self._reads: list[PreparedRead | None] = [None] * fragments
        self._files: list[JoinableFile | None] = [None] * fragments
        self._kinds: list[int] = [_APART] * fragments
        """Files that are alike have one number."""
        self._known: list[tuple[JoinableFile, int]] = []
        """A file of each kind, and how many neighbouring rows of one are read together with those of others."""
        self._whole: dict[int, bool] = {}
        """Whether files with some columns have all of the field."""

    def read(self, run: FragmentRun, numbers: list[int], rows: FileRows) -> Chunks:
        """Return the values of rows of the fragments of these numbers."""
        if not numbers:
            return self._prepared(run, 0).read(Rows.between(0, 0))[0]
        unknown = [
            number
            for number in numbers
            if self._files[number] is None and self._reads[number] is None
        ]
        if unknown:
            self._get_to_know(run, unknown)
        kinds = self._kinds_of(numbers, rows)
        if kinds.count(kinds[0]) == len(kinds):
            return self._read(run, kinds[0], numbers, rows)
        chunks, low = [], 0
        for kind, alike in groupby(kinds):
            high = low + len(list(alike))
            chunks += self._read(run, kind, numbers[low:high], rows.of_files(low, high))
            low = high
        return chunks

    def _kinds_of(self, numbers: list[int], rows: FileRows) -> list[int]:
        """Return the kind of each file, `_APART` also where so many neighbouring rows cost less by themselves."""
        kinds = [self._kinds[number] for number in numbers]
        most = [rows for _, rows in self._known]
        if rows.count <= min(most, default=0):
            return kinds
        pairs = zip(kinds, rows.run_lengths().tolist(), strict=True)
        return [
            kind if kind != _APART and length <= most[kind] else _APART for kind, length in pairs
        ]

    def _read(self, run: FragmentRun, kind: int, numbers: list[int], rows: FileRows) -> Chunks:
        """Return rows of fragments of one kind."""
        files = [file for number in numbers if (file := self._files[number]) is not None]
        if kind != _APART and len(files) == len(numbers):
            found = read_joined(files, rows)
            if found is not None:
                return [found]
        pairs = zip(numbers, rows.each(), strict=True)
        return [chunk for each, mine in pairs for chunk in self._prepared(run, each).read(mine)[0]]

    def _get_to_know(self, run: FragmentRun, numbers: list[int]) -> None:
        """Find out which fragments can be read together with others."""
        for at, number in enumerate(numbers):
            if self._known:
                like, _ = self._known[0]
                self._get_to_know_like(run, numbers[at:], like)
                return
            self._get_to_know_one(run, number)

    def _get_to_know_like(self, run: FragmentRun, numbers: list[int], like: JoinableFile) -> None:
        """Find out which fragments can be read together with a known one."""
        places = [(number, place) for number in numbers if (place := self._place(run, number))]
        mapped = run.map_files([(number, file) for number, (file, _) in places])
        known = [
            (number, source, column_of)
            for (number, (_, column_of)), source in zip(places, mapped, strict=True)
            if source is not None
        ]
        files = joinable_alike(
            [source for _, source, _ in known],
            [run.fragments[number].physical_rows or 0 for number, _, _ in known],
            [column_of for _, _, column_of in known],
            like,
        )
        for (number, _, _), file in zip(known, files, strict=True):
            if file is not None:
                self._keep(number, file)
        for number in numbers:
            if self._files[number] is None:
                self._get_to_know_one(run, number)

    def _place(
        self, run: FragmentRun, number: int
    ) -> tuple[DataFileRef, dict[FieldId, ColumnIndex]] | None:
        """Return the data file of a fragment that has all of the field, and its columns; None if there is none."""
        for file in run.fragments[number].files:
            column_of = run.columns_of(file)
            whole = self._whole.get(id(column_of))
            if whole is None:
                whole = held_part(self._wanted, column_of) is self._wanted
                self._whole[id(column_of)] = whole
            if whole:
                return file, column_of
        return None

    def _get_to_know_one(self, run: FragmentRun, number: int) -> None:
        read = _reader_of(self._prepared(run, number))
        file = None if read is None else joinable_file(read)
        if file is not None:
            self._keep(number, file)

    def _keep(self, number: int, file: JoinableFile) -> None:
        self._kinds[number] = self._kind(file)
        self._files[number] = file

    def _prepared(self, run: FragmentRun, number: int) -> PreparedRead:
        """Return what reads the field of one fragment by itself."""
        found = self._reads[number]
        if found is None:
            reader = FragmentReader(run.files, run.fragments[number])
            found = self._reads[number] = reader.prepare([self._wanted])
        return found

    def _kind(self, file: JoinableFile) -> int:
        for kind, (known, _) in enumerate(self._known):
            if known.is_like(file):
                return kind
        if len(self._known) >= _MOST_KINDS:
            return _APART
        new = file, file.most_rows
        self._known.append(new)
        return self._known.index(new)  # another thread may have appended one, too


def _reader_of(read: PreparedRead) -> ReadRows | None:
    """Return what reads the field of a fragment, if one data file has all of it."""
    if len(read.files) != 1 or read.files[0].parts != read.sources:
        return None
    (part,) = read.files[0].readers
    return part.read
