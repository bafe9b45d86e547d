"""Many columns of one mapped file, read side by side: one kernel call for all columns that are alike.

A wide table has as many pages of few rows as it has columns.  To read them one after the other costs more
than their values do.  So the pages of columns of one type, encoded in like ways, count as the pages of one
column; what was read is cut into columns again::

    pages     a: 3 rows    b: 3 rows    c: 3 rows        float64, plain or packed
    read      [ a a a      b b b        c c c ]          one call of `pick_pieces`
    columns   [ a a a ]  [ b b b ]  [ c c c ]            in memory of their own
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import KIB, MIB, FieldId
from pennon.encoding.block import Block, FixedWidthBlock
from pennon.encoding.exact_batches import ExactBatches
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.file_bytes import Source
from pennon.encoding.v2_1.point_read import CutRows, PickedChunks, PlainPage, Shape
from pennon.errors import LanceError
from pennon.file.container.file import DataFile
from pennon.file.container.opened_file import OpenedFile
from pennon.file.v2_1.assemble_nested import nest, path_types, show
from pennon.file.v2_1.multi_file_take import mapped_source
from pennon.file.v2_1.plain_pages import pages_of_columns
from pennon.file.v2_1.tree import Path, Tree
from pennon.io.store import ObjectReader
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field

MOST_COLUMN_BYTES: Final = 256 * KIB
"""Columns of more bytes are read by themselves."""
MOST_BYTES: Final = MIB
"""About so many bytes of columns are read by one call: a column that is kept keeps no more."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Columns of a file that are read together."""

    source: ObjectReader
    columns: int
    """The number of columns that were asked for; those in no group are read by themselves."""
    rows: int
    groups: tuple[_Group, ...]

    @classmethod
    def of(
        cls, file: OpenedFile, fields: Sequence[Field], column_of: Mapping[FieldId, int]
    ) -> SideBySide | None:
        """Return how fields are read; see `pennon.file.open.side_by_side`."""
        if not isinstance(file, DataFile):
            return None
        plain = [at for at, each in enumerate(fields) if not each.children and not each.metadata]
        if not plain:
            return None
        pages = _pages(file, tuple([column_of.get(fields[at].id, -1) for at in plain]))
        groups: dict[tuple[str, Shape, int | None], list[tuple[int, PlainPage]]] = {}
        for at, page in zip(plain, pages, strict=True):
            if page is not None:
                key = fields[at].logical_type, page.recipe.shape, _items_width(page.dictionary)
                groups.setdefault(key, []).append((at, page))
        made = [_Group.of(fields, column_of, members) for members in groups.values()]
        kept = tuple([group for group in made if group is not None])
        return cls(file.source, len(fields), file.num_rows, kept) if kept else None

    def read(self, rows: Rows) -> list[list[pa.Array] | None]:
        """Return the chunks of each column; None for one that is to be read by itself."""
        found: list[list[pa.Array] | None] = [None] * self.columns
        if not rows.count or rows.starts[0] < 0 or rows.ends[-1] > self.rows:
            return found
        source = mapped_source(self.source)
        for group in self.groups:
            for places, arrays in group.read(source, rows):
                for at, array in zip(places, arrays, strict=True):
                    found[at] = [array]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Pages:
    """The pages of some columns, as they are remembered."""

    each: list[PlainPage | None]

    @property
    def size_bytes(self) -> int:
        """Return how much memory they take."""
        return sum([page.size_bytes for page in self.each if page is not None])


def _pages(file: DataFile, columns: tuple[int, ...]) -> list[PlainPage | None]:
    """Return the pages of columns that can be read together, found now or before."""
    key = "plain pages", columns
    known: _Pages | None = file.search_cache.get(key)
    if known is not None:
        return known.each
    source = mapped_source(file.source)
    if not isinstance(source, np.ndarray):
        return [None] * len(columns)
    found = _Pages(pages_of_columns(source, file.num_rows, columns))
    file.search_cache.put(key, found)
    return found.each


def _items_width(dictionary: Block | None) -> int | None:
    """Return what dictionaries that are joined have in common."""
    if dictionary is None:
        return None
    return dictionary.bits_per_value if isinstance(dictionary, FixedWidthBlock) else 0


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Columns of one type, encoded in like ways, in the order of their pages in the file."""

    places: tuple[int, ...]
    pages: tuple[PlainPage, ...]
    bytes_per_row: int
    path: Path
    types: tuple[pa.DataType, ...]
    shown: pa.DataType

    @classmethod
    def of(
        cls,
        fields: Sequence[Field],
        column_of: Mapping[FieldId, int],
        members: list[tuple[int, PlainPage]],
    ) -> _Group | None:
        """Return the group of columns; None if they are not worth one."""
        first = fields[members[0][0]]
        tree = Tree.of(first, column_of)
        types = path_types((first,), tree)
        if len(members) < 2 or pa.types.is_dictionary(types[-1]):
            return None
        members.sort(key=lambda member: member[1].table.place)
        shown = field_to_arrow(first).type
        places, pages = zip(*members, strict=True)
        widest = max(page.table.row_bytes for page in pages)
        return cls(places, pages, widest, (first,), types, shown)

    def read(self, source: Source, rows: Rows) -> Iterator[tuple[Sequence[int], list[pa.Array]]]:
        """Yield some columns and their values, until all are read; none that is damaged, or large."""
        column_bytes = max(self.bytes_per_row * rows.count, 1)
        if column_bytes > MOST_COLUMN_BYTES:
            return
        step = max(MOST_BYTES // column_bytes, 1)
        for low in range(0, len(self.pages), step):
            pages = self.pages[low : low + step]
            try:
                arrays = self._read(source, pages, rows)
            except LanceError:
                continue
            if arrays is not None:
                yield self.places[low : low + step], arrays

    def _read(
        self, source: Source, pages: Sequence[PlainPage], rows: Rows
    ) -> list[pa.Array] | None:
        found = PickedChunks.of(pages, _of_each(rows, len(pages))).pick_mapped([source])
        if found is None:
            return None
        count = rows.count
        whole = show(nest(found, self.path, self.types, len(pages) * count), self.shown)
        parts = [whole.slice(number * count, count) for number in range(len(pages))]
        batch = pa.RecordBatch.from_arrays(parts, names=[""] * len(parts))
        cut: pa.RecordBatch = ExactBatches(batch.schema).cut(batch)
        columns: list[pa.Array] = cut.columns
        return columns


def _of_each(rows: Rows, pages: int) -> CutRows:
    """Return the same rows of each of several pages of a file."""
    ranges = len(rows.starts)
    cuts: Int64Array = np.arange(0, (pages + 1) * ranges, ranges, dtype=np.int64)
    files, numbers = np.zeros(pages, np.int64), np.arange(pages)
    starts, ends = np.tile(rows.starts, pages), np.tile(rows.ends, pages)
    return CutRows(files, numbers, cuts, starts, ends, pages * rows.count)
