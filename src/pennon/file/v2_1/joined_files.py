"""One field of several mapped files with pages that are alike: one kernel call for each of its columns.

A table of many small files has as many pages of each column.  To decode them one after the other
costs more than their values do; joined, they count as the pages of one column, whatever rows are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.kernels.chunk_index import flat_tables
from pennon.encoding.read_protocol import run
from pennon.encoding.rows import FileRows
from pennon.encoding.v2_1.chunk_index import MOST_CHUNK_VALUES, parse_chunk_index
from pennon.encoding.v2_1.layouts import MiniBlock, max_repetition
from pennon.encoding.v2_1.point_read import (
    CutRows,
    PickedPage,
    PlainPage,
    Recipe,
    are_alike,
    recipe_of,
)
from pennon.errors import LanceError
from pennon.file.container.column_metadata import Direct
from pennon.file.container.opened_file import ReadRows
from pennon.file.kernels.column_metadata import find_plain_pages
from pennon.file.v2_1.leaf_reader import known_pages, parse_page_layout
from pennon.file.v2_1.multi_file_take import mapped_source, pick_rows
from pennon.file.v2_1.reader import FieldPlan, FieldReader
from pennon.io.store import ObjectReader

_VERSION: Final = 8
"""So many bytes at the end of a file say its version."""
_SAME, _OTHER = 1, 2
_Plain: TypeAlias = tuple[MiniBlock, Recipe]


@dataclass(frozen=True, slots=True, eq=False)
class JoinableFile:
    """A field of a file: its plan, and all pages of each leaf."""

    plan: FieldPlan
    """That of another file, if both have the same leaves."""
    source: ObjectReader
    pages: tuple[tuple[PickedPage, ...], ...]
    borders: tuple[Int64Array, ...]
    """The first row of each page of each leaf, and the number of all rows."""
    kin: object
    """The same for files whose metadata differs in nothing but the places of pages."""

    def is_like(self, other: JoinableFile) -> bool:
        """Return whether both have the same columns of the same field, and pages that are alike."""
        if self.kin is other.kin:
            return True
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
    return JoinableFile(plan, source, tuple(pages), borders, object())


def joinable_alike(
    files: Sequence[ObjectReader],
    rows: Sequence[int],
    columns: Sequence[Mapping[FieldId, int]],
    like: JoinableFile,
) -> list[JoinableFile | None]:
    """Return what is known of the field of other files; see `pennon.file.open.joinable_alike`."""
    model = _Model.of(like)
    wholes = [mapped_source(each) for each in files]
    whole = [each for each in wholes if isinstance(each, np.ndarray)]
    if model is None or len(whole) < len(files):
        return [None] * len(files)
    indices = [[each.get(leaf, -1) for each in columns] for leaf in model.leaves]
    table = find_plain_pages(
        whole, np.array(rows, np.int64), np.array(indices, np.int64), model.encodings, model.version
    )
    pages = [
        _pages(known, whole, rows, numbers)
        for known, numbers in zip(model.layouts, table, strict=True)
    ]
    is_same = (table[:, :, 0] == _SAME).all(axis=0).tolist()
    borders = {each: (np.array([0, each], np.int64),) * len(pages) for each in set(rows)}
    found: list[JoinableFile | None] = []
    for source, count, same, *of_leaves in zip(files, rows, is_same, *pages, strict=True):
        held = tuple([(page,) for page in of_leaves if page is not None])
        if len(held) < len(pages):
            found.append(None)
            continue
        kin = like.kin if same else object()
        found.append(JoinableFile(like.plan, source, held, borders[count], kin))
    return found


@dataclass(frozen=True, slots=True)
class _Model:
    """The pages of a field in a file, as those of other files are compared with them."""

    version: bytes
    leaves: tuple[FieldId, ...]
    """The ids of the fields."""
    encodings: list[bytes]
    layouts: list[_Plain]

    @classmethod
    def of(cls, file: JoinableFile) -> _Model | None:
        """Return the model that the file of a plan is; None if its pages are not plain."""
        leaves = file.plan.leaves
        found = [leaf.column.pages[0].encoding for leaf in leaves]
        encodings = [each.data for each in found if isinstance(each, Direct)]
        layouts = [plain for each in encodings if (plain := _plain_layout(each)) is not None]
        if len(layouts) < len(leaves):
            return None
        (version,) = file.source.read([ByteRange(file.source.size_bytes - _VERSION, _VERSION)])
        ids = tuple([leaf.path[-1].id for leaf in leaves])
        return cls(version.to_pybytes(), ids, encodings, layouts)


def _pages(
    model: _Plain, files: list[Bytes], rows: Sequence[int], numbers: Int64Array
) -> list[PlainPage | None]:
    """Return the page of each file that `find_plain_pages` tells of; None where it is none that can be joined."""
    layout, recipe = model
    width = 4 if layout.is_large else 2
    tables = flat_tables(files, numbers, width, layout.num_items, MOST_CHUNK_VALUES)
    pages = [
        PlainPage(table, recipe) if table is not None and count == layout.num_items else None
        for table, count in zip(tables, rows, strict=True)
    ]
    for at in np.flatnonzero(numbers[:, 0] == _OTHER).tolist():
        pages[at] = _other_page(files[at], rows[at], *numbers[at, 1:].tolist())
    return pages


def _other_page(
    whole: Bytes,
    rows: int,
    words: int,
    words_bytes: int,
    chunks: int,
    chunks_bytes: int,
    first: int,
    end: int,
) -> PlainPage | None:
    """Return a page that is encoded in another way, by the numbers of `find_plain_pages`."""
    known = _plain_layout(whole[first:end].tobytes())
    if known is None:
        return None
    layout, recipe = known
    try:
        held = whole[words : words + words_bytes]
        index = parse_chunk_index(layout, rows, held, chunks_bytes, None)
        return PlainPage(index.table(chunks), recipe)
    except LanceError:
        return None


@lru_cache(maxsize=1024)
def _plain_layout(encoding: bytes) -> _Plain | None:
    """Return the layout of mini-block pages without lists and dictionaries, and how to pick their values."""
    try:
        layout = parse_page_layout(encoding)
    except LanceError:
        return None
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
) -> tuple[list[PickedPage], CutRows]:
    """Return the pages of a leaf that have rows, and the rows of each."""
    pages = [each.pages[leaf] for each in files]
    if all(len(each) == 1 for each in pages):
        every = np.arange(len(files))
        cut = CutRows(every, np.zeros_like(every), rows.cuts, rows.starts, rows.ends, rows.count)
        return [each[0] for each in pages], cut
    cut = CutRows.of_files(rows, [each.borders[leaf] for each in files])
    pairs = zip(cut.files.tolist(), cut.numbers.tolist(), strict=True)
    return [pages[file][page] for file, page in pairs], cut
