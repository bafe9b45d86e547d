"""Reading the columns of one fragment, which may lie in several data files.

All data files of a fragment have the same rows in the same order; each holds some of the fields.
Which file holds a field is told by the field ids in the manifest, never by names:

* an id of -2 is a tombstone: a newer file holds that field, the column here is dead;
* a field that no file holds reads as NULLs: it was added after this fragment was written; or its values
  lie in a nested table of blobs (`pennon.scan.read.blob_table`);
* a struct whose children lie in several files, or only some of them, is put together from what
  there is (`pennon.scan.read.join_columns`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import current_pool
from pennon.core.thread_pools import PoolSpec, map_all, pool
from pennon.core.units import KIB
from pennon.encoding.exact_batches import exact_array
from pennon.encoding.read_protocol import run, together
from pennon.encoding.rows import FileRows, Rows
from pennon.errors import Breadcrumb, FormatError, TooLargeError, UnsupportedError
from pennon.file.container.opened_file import AtOnce, ReadsSideBySide
from pennon.file.open import describe_read, read_across, side_by_side
from pennon.index.row_set import RowSet
from pennon.io.limits import FetchLimits
from pennon.scan.deletion_mask import NONE_DELETED, LiveRows
from pennon.scan.read.blob_table import find_apart
from pennon.scan.read.file_columns import FileColumns, PartReader, PartReaders, RecentFiles
from pennon.scan.read.join_columns import is_split_within, join, with_whole_packed
from pennon.scan.snapshot import Key, OpenFile, Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.blob import holds_blobs_v2
from pennon.schema.check import is_packed
from pennon.schema.field import Field
from pennon.schema.project import held_part
from pennon.schema.width import row_bytes
from pennon.table.blob_table import is_stored_apart
from pennon.table.fragment import Fragment

if TYPE_CHECKING:
    from pennon.scan.read.blob_table import StoredApart

Chunks: TypeAlias = "list[pa.Array[Any]]"
"""Values of one column: arrays that follow one another, none longer than a page."""


T = TypeVar("T")
BELIEVED_ROWS = 1 << 24
"""So many rows of a fragment are believed unseen; writers put a million into a file."""

NULL_CHUNK_BYTES = 512 * KIB
MANY_COLUMNS: Final = 8
"""The fewest columns of a file for which columns that are alike are read together."""
RECENT_FILES: Final[Key[RecentFiles]] = Key("recent files")


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a field that one data file has: the field as that file has it."""

    file: int
    field: Field


@dataclass(frozen=True, slots=True)
class Absent:
    """A field that no data file of the fragment holds."""

    field: Field


@dataclass(frozen=True, slots=True)
class Joined:
    """A field with parts in several files, or with one file that has only a part."""

    field: Field
    parts: tuple[Part, ...]


Source: TypeAlias = "Part | Absent | Joined | StoredApart"


@dataclass(frozen=True, slots=True)
class PreparedFile:
    """The parts that are read from one data file, each with its reader."""

    opened: OpenFile
    parts: tuple[Part, ...]
    readers: Sequence[PartReader]
    side: ReadsSideBySide | None = None
    """Reads those of many parts that can be read together."""

    def read(self, rows: Rows) -> list[Chunks]:
        """Return the values of each part."""
        if self.side is not None:
            return self._read_side_by_side(self.side.read(rows), rows)
        found = self._read_at_once(rows)
        if found is not None:
            return found
        return run(together([read(rows) for read in self.readers]), self.opened.source.read)

    def _read_side_by_side(self, found: list[Chunks | None], rows: Rows) -> list[Chunks]:
        """Return the values that were found, and those of the parts that are read by themselves."""
        missing = [self.readers[at](rows) for at, chunks in enumerate(found) if chunks is None]
        others = iter(run(together(missing), self.opened.source.read))
        return [next(others) if chunks is None else chunks for chunks in found]

    def _read_at_once(self, rows: Rows) -> list[Chunks] | None:
        """Return the values by one round; None where it takes more, or something is wrong."""
        steps: list[AtOnce] = []
        for part in self.readers:
            step = None if part.quick is None else part.quick.at_once(rows)
            if step is None:
                return None
            steps.append(step)
        answers = self.opened.source.read([request for request, _ in steps])
        found = [pick(answer) for (_, pick), answer in zip(steps, answers, strict=True)]
        known = [[array] for array in found if array is not None]
        return known if len(known) == len(found) else None


@dataclass(frozen=True, slots=True)
class PreparedRead:
    """Fields of one fragment, found in data files that are open: ready to be read, and again."""

    sources: tuple[Source, ...]
    files: tuple[PreparedFile, ...]
    limits: FetchLimits | None

    @property
    def is_mapped(self) -> bool:
        """Tell whether requests cost nothing."""
        return all(file.opened.source.is_mapped for file in self.files)

    def read(self, rows: Rows) -> list[Chunks]:
        """Return the values of each field at the given physical rows.

        All fields of a data file are read in lockstep: so many rounds of requests as the deepest
        column needs, no more.  Several files of a remote store are read at once.  Rows that are too many
        for one array come in several.
        """
        try:
            return self._read(rows)
        except TooLargeError:
            if rows.count < 2:
                raise
        half = rows.count // 2
        pieces = [self.read(rows.window(*part)) for part in ((0, half), (half, rows.count))]
        return [[*first, *rest] for first, rest in zip(*pieces, strict=True)]

    def _read(self, rows: Rows) -> list[Chunks]:
        if len(self.files) == 1 and self.files[0].parts == self.sources:
            return self.files[0].read(rows)
        values: dict[int, Chunks] = {}
        read = _side_by_side(self.limits, [partial(file.read, rows) for file in self.files])
        for file, chunks in zip(self.files, read, strict=True):
            values.update(zip(map(id, file.parts), chunks, strict=True))
        return [_build(source, values, rows) for source in self.sources]


@dataclass(frozen=True, slots=True)
class FragmentReader:
    """Reads columns of one fragment of one version of a table.

    ``with_deleted``: rows that are deleted count as alive.
    """

    snapshot: Snapshot
    fragment: Fragment
    with_deleted: bool = False
    files: tuple[FileColumns, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Look at the manifest only; no file is opened."""
        recent = self.snapshot.remember(RECENT_FILES, RecentFiles.none)
        files = tuple(map(recent.of, self.fragment.files))
        object.__setattr__(self, "files", files)

    def physical_rows(self) -> int:
        """Return the number of rows, deleted ones counted.

        Fragments of writers before 0.8 do not say it; then the data file is asked.  So it is where a
        manifest claims very many: what is made for each row, its id say, is made after.
        """
        stated = self.fragment.physical_rows
        if stated and (stated <= BELIEVED_ROWS or not self.files):
            return stated
        if not self.files:
            return 0
        if stated:
            return self._open(self.files[0]).data.num_rows
        return self.snapshot.open_file(self.files[0].ref).data.num_rows

    def live_rows(self) -> LiveRows:
        """Return which rows are alive."""
        if self.with_deleted:
            return LiveRows.of(self.physical_rows())
        return LiveRows.of(self.physical_rows(), self.snapshot.deleted(self.fragment))

    def read(self, fields: Sequence[Field], rows: Rows) -> list[Chunks]:
        """Return the values of each field at the given physical rows; see `PreparedRead`."""
        return self.prepare(fields).read(rows)

    def prepare(self, fields: Sequence[Field]) -> PreparedRead:
        """Find fields in the data files, and open these."""
        sources = tuple([self._find(field) for field in fields])
        parts = [part for source in sources for part in _parts(source)]
        groups = [tuple([part for part in parts if part.file == n]) for n in range(len(self.files))]
        work = [
            partial(self._prepare_file, columns, mine)
            for columns, mine in zip(self.files, groups, strict=True)
            if mine
        ]
        limits = self.snapshot.store.limits
        return PreparedRead(sources, tuple(_side_by_side(limits, work)), limits)

    def find(self, fields: Sequence[Field]) -> tuple[LiveRows, PreparedRead]:
        """Return which rows are alive, and the fields ready to be read.

        A remote store is asked for the deletion file and the ends of the data files at once.
        """
        limits = self.snapshot.store.limits
        if limits is None or self.fragment.deletion_file is None:
            return self.live_rows(), self.prepare(fields)
        live = pool(PoolSpec.objects(limits.concurrency)).submit(self.live_rows)
        columns = self.prepare(fields)
        return live.result(), columns

    def describe(self, fields: Sequence[Field], rows: Rows) -> list[str]:
        """Return in words how rows of fields would be read, a line for each column."""
        lines: list[str] = []
        for source in map(self._find, fields):
            if isinstance(source, Absent):
                lines.append(f"{source.field.name}: in no data file, all NULL")
            elif not isinstance(source, Part | Joined):
                lines.append(f"{source.field.name}: in the nested table of blobs, by row id")
            for part in _parts(source):
                columns = self.files[part.file]
                opened = self._open(columns)
                steps = describe_read(opened.data, part.field, columns.column_of, rows)
                lines += run(steps, opened.source.read)
        return lines

    def _prepare_file(self, columns: FileColumns, parts: tuple[Part, ...]) -> PreparedFile:
        opened = self._open(columns)
        readers = PartReaders(opened, columns, [part.field for part in parts])
        is_apart = self.snapshot.meter is not None or not opened.source.is_mapped
        if len(parts) < MANY_COLUMNS or is_apart:
            return PreparedFile(opened, parts, tuple(readers))
        side = side_by_side(opened.data, [part.field for part in parts], columns.column_of)
        return PreparedFile(opened, parts, readers, side)

    def _open(self, columns: FileColumns) -> OpenFile:
        opened = self.snapshot.open_file(columns.ref)
        expected = self.fragment.physical_rows
        if expected and opened.data.num_rows != expected:
            message = (
                f"fragment {self.fragment.id} has {expected} rows, "
                f"but a data file of it {opened.data.num_rows}"
            )
            raise FormatError(message, where=Breadcrumb(columns.ref.store_path))
        return opened

    def _find(self, wanted: Field) -> Source:
        """Tell where a field's values come from."""
        if holds_blobs_v2(wanted):
            message = (
                f"column {wanted.name!r} holds blobs of version 2, which may lie in files of their "
                "own; scans show their descriptions or bytes, take_blobs gives files"
            )
            raise UnsupportedError(message)
        parts, whole = [], wanted
        if wanted.children and any(map(is_packed, wanted.walk())):
            fields = self.snapshot.manifest.schema.walk()
            whole = with_whole_packed(wanted, {each.id: each for each in fields if is_packed(each)})
        for number, columns in enumerate(self.files):
            held = held_part(whole, columns.column_of)
            if held is not None:
                parts.append(Part(number, held))
                if held is wanted or held == wanted:
                    return parts[-1]
        if not parts:
            return self._find_elsewhere(wanted)
        if is_split_within([part.field for part in parts]):
            message = (
                f"column {wanted.name!r}: its parts lie in several data files of fragment "
                f"{self.fragment.id}, and only structs and lists are joined"
            )
            raise UnsupportedError(message)
        return Joined(wanted, tuple(parts))

    def _find_elsewhere(self, wanted: Field) -> Source:
        """Return the source of a field's values that no data file of the fragment has."""
        if not wanted.metadata or not is_stored_apart(wanted):
            return Absent(wanted)
        found = find_apart(self.snapshot, self.fragment, wanted, FragmentReader)
        return found or Absent(wanted)


def live_rows(snapshot: Snapshot, fragment: Fragment) -> LiveRows:
    """Return which rows of a fragment are alive; nothing is looked up where its entry says it."""
    stated = fragment.physical_rows
    if fragment.deletion_file is None and stated and stated <= BELIEVED_ROWS:
        return LiveRows(stated, NONE_DELETED)
    return FragmentReader(snapshot, fragment).live_rows()


def live_addresses(snapshot: Snapshot, fragments: Iterable[Fragment]) -> RowSet:
    """Return the addresses of the rows of fragments that are alive."""
    starts, lasts = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for fragment in fragments:
        live = live_rows(snapshot, fragment)
        rows = live.between(0, live.count).ranges()
        first = np.uint64(fragment.id << 32)
        starts.append(rows.starts.astype(np.uint64) + first)
        lasts.append(rows.ends.astype(np.uint64) + first - np.uint64(1))
    return RowSet.of_ranges(np.concatenate(starts), np.concatenate(lasts))


def _side_by_side(limits: FetchLimits | None, work: Sequence[Callable[[], T]]) -> list[T]:
    """Return what each piece of work gives; where they wait for a remote store, they do at once."""
    if limits is None:
        return [do() for do in work]
    return map_all(lambda do: do(), work, PoolSpec.objects(limits.concurrency))


def read_together(reads: Sequence[PreparedRead], rows: FileRows) -> list[Chunks] | None:
    """Return the values of each field in rows of several mapped fragments, one after the other.

    None if a fragment is not one data file with all fields; a field that cannot be read together is
    read fragment by fragment.
    """
    if any(len(read.files) != 1 or read.files[0].parts != read.sources for read in reads):
        return None
    files = [read.files[0] for read in reads]
    values: list[Chunks] = []
    for parts in zip(*(file.readers for file in files), strict=True):
        whole = read_across([part.read for part in parts], rows)
        if whole is not None:
            values.append([whole])
            continue
        pairs = zip(parts, files, rows.each(), strict=True)
        pieces = [run(part(its), file.opened.source.read) for part, file, its in pairs]
        values.append([chunk for chunks in pieces for chunk in chunks])
    return values


def _parts(source: Source) -> list[Part]:
    if isinstance(source, Part):
        return [source]
    return list(source.parts) if isinstance(source, Joined) else []


def _build(source: Source, values: dict[int, Chunks], rows: Rows) -> Chunks:
    if isinstance(source, Part):
        return values[id(source)]
    if isinstance(source, Absent):
        return null_chunks(source.field, rows.count)
    if not isinstance(source, Joined):
        return source.read(rows)
    if len(source.parts) == 1:
        (part,) = source.parts
        return [join(source.field, [(part.field, chunk)]) for chunk in values[id(part)]]
    pieces = [(part.field, one_array(values[id(part)])) for part in source.parts]
    return [join(source.field, pieces)]


def null_chunks(absent: Field, rows: int) -> Chunks:
    """Return ``rows`` NULLs of a field's type; a struct is NULL as a whole.

    They are one small array, named as often as it takes: however many rows a manifest claims for a
    column that lies nowhere, they cost nothing.
    """
    chunk = _nulls(field_to_arrow(absent).type)
    whole, rest = divmod(rows, len(chunk))
    return [chunk] * whole + ([exact_array(chunk.slice(0, rest))] if rest or not whole else [])


@lru_cache(maxsize=16)
def _nulls(data_type: pa.DataType) -> pa.Array[Any]:
    """Return as many NULLs as `NULL_CHUNK_BYTES` can hold, but at least one."""
    least = row_bytes(pa.schema([("", data_type)]))
    found: pa.Array[Any] = pa.nulls(max(NULL_CHUNK_BYTES // max(least, 8), 1), data_type)
    return found


def one_array(chunks: Chunks) -> pa.Array[Any]:
    """Return chunks as one array; one chunk is returned as it is."""
    if len(chunks) == 1:
        return chunks[0]
    whole: pa.Array[Any] = pa.concat_arrays(chunks, current_pool())
    return whole
