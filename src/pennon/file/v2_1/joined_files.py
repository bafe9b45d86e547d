"""One field of several mapped files with pages that are alike: one kernel call for each of its columns.

A table of many small files has as many pages of each column.  To decode them one after the other
costs more than their values do; joined, they count as the pages of one column, whatever rows are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.encoding.arrow_buffers import as_bytes
from pennon.encoding.read_protocol import run
from pennon.encoding.rows import FileRows
from pennon.encoding.v2_1.chunk_index import parse_chunk_index
from pennon.encoding.v2_1.layouts import MiniBlock, max_repetition
from pennon.encoding.v2_1.point_read import (
    CutRows,
    KnownPage,
    Recipe,
    are_alike,
    recipe_of,
)
from pennon.errors import LanceError
from pennon.file.container.file import DataFile
from pennon.file.container.footer import MAX_ROWS
from pennon.file.container.opened_file import OpenedFile, ReadRows
from pennon.file.kernels.column_metadata import find_pages
from pennon.file.v2_1.leaf_reader import known_pages, parse_page_layout
from pennon.file.v2_1.multi_file_take import mapped_source, pick_rows
from pennon.file.v2_1.reader import FieldPlan, FieldReader
from pennon.io.store import ObjectReader

_DIRECT: Final = 1
_BUFFERS: Final = 2
"""The number of buffers of a mini-block page without lists and dictionary: chunk words and chunks."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinableFile:
    """A field of a file: its plan, and all pages of each leaf."""

    plan: FieldPlan
    """That of another file, if both have the same leaves."""
    source: ObjectReader
    pages: tuple[tuple[KnownPage, ...], ...]
    borders: tuple[Int64Array, ...]
    """The first row of each page of each leaf, and the number of all rows."""

    def is_like(self, other: JoinableFile) -> bool:
        """Return whether both have the same columns of the same field, and pages that are alike."""
        one, two = self.plan, other.plan
        if one.field is not two.field or one.kin != two.kin:
            return False
        pairs = zip(self.pages, other.pages, strict=True)
        return all(are_alike([a[0], b[0]]) for a, b in pairs)


def joinable_file(reader: ReadRows) -> JoinableFile | None:
    """Return what is known of a field of a file; see `pennon.file.open.joinable_file`."""
    if not isinstance(reader, FieldReader):
        return None
    source = reader.source
    try:
        plan = run(reader.plan(), source.read)
        if plan.kin is None:
            return None
        pages = []
        for leaf in plan.leaves:
            found = run(known_pages(leaf, list(range(len(leaf.column.pages)))), source.read)
            known = [page for page in found if page is not None and leaf.can_join(page)]
            if not known or len(known) < len(found) or not are_alike(known):
                return None
            pages.append(tuple(known))
    except LanceError:
        return None
    borders = tuple([leaf.column.first_rows for leaf in plan.leaves])
    return JoinableFile(plan, source, tuple(pages), borders)


def joinable_like(
    file: OpenedFile, column_of: Mapping[FieldId, int], like: JoinableFile
) -> JoinableFile | None:
    """Return what is known of the field of another file; see `pennon.file.open.joinable_like`."""
    if not isinstance(file, DataFile):
        return None
    pages, borders = [], []
    try:
        for leaf in like.plan.leaves:
            index = column_of.get(leaf.path[-1].id, -1)
            if not 0 <= index < file.num_columns:
                return None
            (buffer,) = file.source.read([file.column_extents[index]])
            data = buffer.to_pybytes()
            numbers, extents, first_rows, _ = find_pages(data, file.source.size_bytes, MAX_ROWS)
            mine = _plain_pages(file.source, data, numbers, extents)
            if not mine or first_rows[-1] != file.num_rows:
                return None
            pages.append(mine)
            borders.append(first_rows)
    except (ValueError, LanceError):
        return None
    return JoinableFile(like.plan, file.source, tuple(pages), tuple(borders))


def _plain_pages(
    source: ObjectReader, data: bytes, numbers: Int64Array, extents: Int64Array
) -> tuple[KnownPage, ...] | None:
    """Return the pages of a column, all mini-blocks without lists and dictionaries; None if one is not."""
    held = []
    for rows, _, kind, start, end, first, count in numbers.tolist():
        known = _plain_layout(data[start:end]) if kind == _DIRECT and count == _BUFFERS else None
        if known is None:
            return None
        held.append((known, rows, first))
    words = source.read([ByteRange(*extents[first].tolist()) for _, _, first in held])
    pages = []
    for ((layout, recipe), rows, first), buffer in zip(held, words, strict=True):
        position, size_bytes = extents[first + 1].tolist()
        index = parse_chunk_index(layout, rows, as_bytes(buffer), size_bytes, None)
        pages.append(KnownPage(index, index.table(position), recipe))
    return tuple(pages) if are_alike(pages) else None


@lru_cache(maxsize=256)
def _plain_layout(encoding: bytes) -> tuple[MiniBlock, Recipe] | None:
    """Return the layout of mini-block pages without lists and dictionaries, and how to pick their values."""
    layout = parse_page_layout(encoding)
    if not isinstance(layout, MiniBlock) or layout.dictionary is not None:
        return None
    recipe = None if max_repetition(layout.layers) else recipe_of(layout)
    return None if recipe is None else (layout, recipe)


def read_joined(files: Sequence[JoinableFile], rows: FileRows) -> pa.Array | None:
    """Return rows of files that are alike, in order; see `pennon.file.open.read_joined`."""
    plan = files[0].plan
    sources = [mapped_source(each.source) for each in files]
    parts = (_cut(files, number, rows) for number in range(len(plan.leaves)))
    try:
        return pick_rows(plan, sources, parts, rows.count)
    except LanceError:
        return None


def _cut(
    files: Sequence[JoinableFile], leaf: int, rows: FileRows
) -> tuple[list[KnownPage], CutRows]:
    """Return the pages of a leaf that have rows, and the rows of each."""
    pages = [each.pages[leaf] for each in files]
    if all(len(each) == 1 for each in pages):
        every = np.arange(len(files))
        cut = CutRows(every, np.zeros_like(every), rows.cuts, rows.starts, rows.ends, rows.count)
        return [each[0] for each in pages], cut
    cut = CutRows.of_files(rows, [each.borders[leaf] for each in files])
    pairs = zip(cut.files.tolist(), cut.numbers.tolist(), strict=True)
    return [pages[file][page] for file, page in pairs], cut
