"""Reading fields of files of versions 2.1 and 2.2.

All pages of all leaves of a field are read side by side: one round for what the pages say of
themselves (unless it is remembered), one for the values; blobs take one more.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from pennon.encoding.block import VariableBlock
from pennon.encoding.page import PageBuffers
from pennon.encoding.rows import Rows
from pennon.encoding.steps import Steps, together
from pennon.encoding.v2_1.blob_page import Blobs, blobs_of
from pennon.encoding.v2_1.codecs import CODECS
from pennon.encoding.v2_1.join import join_pages
from pennon.encoding.v2_1.layouts import BlobPage, Layout, MiniBlock
from pennon.encoding.v2_1.mini_block import read_known
from pennon.encoding.v2_1.neighbours import WholePage, kinship, read_neighbours
from pennon.encoding.v2_1.page import PageValues
from pennon.encoding.v2_1.pages import read_page
from pennon.encoding.v2_1.picked import MOST_ROWS, CutRows, Found, KnownPage, are_alike
from pennon.encoding.v2_1.search_cache import Slot
from pennon.errors import ArgumentError, Breadcrumb, FormatError, LanceError
from pennon.file.node import Node, encoding_bytes, page_buffers, pages_of
from pennon.file.v2_1.nest import merge, nest, path_types, show
from pennon.file.v2_1.tree import Path, Tree, column_index, column_rows, described
from pennon.file.wire import Column, Page, parse_page_layout
from pennon.ranges import Extent, Gather
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field
from pennon.units import MIB, FieldId

if TYPE_CHECKING:
    from pennon.file.reader import DataFile

RUN_BYTES: Final = MIB
SMALL_PAGES: Final = 4
"""Pages are decoded together until they have about `RUN_BYTES`, if so many at least are within."""

_PagePart: TypeAlias = tuple[int, Rows]
"""The number of a page, and rows of it."""


class FieldReader:
    """See `pennon.file.reader.DataFile.field_reader`.

    What does not depend on the rows is found out once, by the first read.
    """

    __slots__ = ("_column_of", "_field", "_file", "_plan")

    def __init__(self, file: DataFile, field: Field, column_of: Mapping[FieldId, int]) -> None:
        self._file = file
        self._field = field
        self._column_of = column_of
        self._plan: _Plan | None = None

    def __call__(self, rows: Rows) -> Steps[list[pa.Array]]:
        """Return the steps that read rows."""
        file = self._file
        if len(rows.starts) and (rows.ends[-1] > file.num_rows or rows.starts[0] < 0):
            message = f"rows up to {rows.end} of a file that has {file.num_rows} rows"
            raise ArgumentError(message, where=Breadcrumb(file=file.source.path))
        try:
            plan = self._plan
            if plan is None:
                plan = self._plan = yield from self._make_plan()
            return (yield from plan.read(rows))
        except LanceError as error:
            place = Breadcrumb(file=file.source.path, column=self._field.name)
            raise error.located(place) from error.__cause__

    def _make_plan(self) -> Steps[_Plan]:
        """Return the steps that read the metadata of the columns."""
        file, column_of = self._file, self._column_of
        field = described(self._field)
        tree = Tree.of(field, column_of)
        paths = list(tree.paths())
        columns = yield from file.read_columns([column_index(path, column_of) for path in paths])
        pairs = zip(paths, columns, strict=True)
        leaves = tuple(_Leaf.of(file, column_of, tree, path, column) for path, column in pairs)
        return _Plan(tree, leaves, field_to_arrow(field).type)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The leaves of a field, and the type that users see."""

    tree: Tree
    leaves: tuple[_Leaf, ...]
    shown: pa.DataType

    def read(self, rows: Rows) -> Steps[list[pa.Array]]:
        """Return the steps that read all leaves side by side."""
        run_rows = max(RUN_BYTES // max(_row_bytes(leaf) for leaf in self.leaves), 1)
        chunks = yield from together([_read_leaf(leaf, rows, run_rows) for leaf in self.leaves])
        return [show(array, self.shown) for array in merge(self.tree, chunks)]


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column, and the way to it in the schema."""

    file: DataFile
    path: Path
    column: Column
    node: Node
    types: tuple[pa.DataType, ...]
    factor: int
    """How many rows of the column a row of the file is."""
    opened: dict[int, _OpenPage] = field(default_factory=dict)
    """The pages that were read before, by their numbers."""

    @classmethod
    def of(
        cls,
        file: DataFile,
        column_of: Mapping[FieldId, int],
        tree: Tree,
        path: Path,
        column: Column,
    ) -> _Leaf:
        """Return the leaf at the end of ``path``."""
        factor = column_rows(path)
        name = ".".join(field.name for field in path)
        node = Node(file, column_of, name, file.num_rows * factor)
        return cls(file, path, column, node, path_types(path, tree), factor)


def _read_leaf(leaf: _Leaf, rows: Rows, run_rows: int) -> Steps[list[pa.Array]]:
    """Return the steps that read a column: arrays of the whole path.

    There is one for each page touched, or for a run of pages that are alike: of about ``run_rows``
    rows if all rows of the pages are wanted, of any number if they are single rows.
    """
    leaf.node.check_total(leaf.column)
    wanted = rows if leaf.factor == 1 else rows.scaled(leaf.factor)
    if not rows.is_contiguous and len(leaf.column.pages) > 1 and 0 < wanted.count <= MOST_ROWS:
        picked = yield from _pick(leaf, wanted)
        if picked is not None:
            return [picked]
    parts = list(pages_of(leaf.node, leaf.column, wanted))
    if len(parts) == 1:
        return [(yield from _read_nested(leaf, *parts[0]))]
    if rows.is_contiguous:
        runs = yield from _runs(leaf, parts, run_rows)
        arrays = yield from together([_read_run(leaf, run) for run in runs])
        return [array for chunks in arrays for array in chunks]
    values = yield from together([_read_page(leaf, *part) for part in parts])
    joined = join_pages(values) if values else None
    if joined is None:
        pairs = zip(values, parts, strict=True)
        return [_nested(leaf, page, number, part.count) for page, (number, part) in pairs]
    return [_nested(leaf, joined, parts[0][0], wanted.count)]


def _pick(leaf: _Leaf, wanted: Rows) -> Steps[pa.Array | None]:
    """Return the steps that read rows of pages that are alike; None if they are not.

    None as well if one of them is damaged: which one shows when they are read one by one.
    """
    rows = CutRows.of_pages(wanted, leaf.column.first_rows)
    numbers = rows.numbers.tolist()
    known = yield from _known_pages(leaf, numbers)
    pages = [page for page in known if page is not None]
    if len(pages) < len(known) or not are_alike(pages):
        return None
    try:
        values = yield from Found.of(pages, rows).pick()
        return _nested(leaf, values, numbers[0], wanted.count)
    except FormatError:
        return None


def _known_pages(leaf: _Leaf, numbers: list[int]) -> Steps[list[KnownPage | None]]:
    """Return the steps that get to know pages; None for those that are no mini-block pages."""
    known: dict[int, KnownPage | None] = {}
    for number in numbers:
        page = leaf.opened.get(number)
        if page is not None:
            found = page.slot.get() if isinstance(page.layout, MiniBlock) else None
            if found is not None or not isinstance(page.layout, MiniBlock):
                known[number] = cast("KnownPage | None", found)
    missing = [number for number in numbers if number not in known]
    if missing:
        found_now = yield from together([_get_to_know(leaf, number) for number in missing])
        known.update(zip(missing, found_now, strict=True))
    return [known[number] for number in numbers]


def _get_to_know(leaf: _Leaf, number: int) -> Steps[KnownPage | None]:
    try:
        page = yield from _opened(leaf, number)
        if not isinstance(page.layout, MiniBlock):
            return None
        return (yield from read_known(page.layout, page.buffers, CODECS, page.slot))
    except LanceError as error:
        place = leaf.node.place(leaf.column.pages[number], number)
        raise error.located(place) from error.__cause__


def _opened(leaf: _Leaf, number: int) -> Steps[_OpenPage]:
    page = leaf.opened.get(number)
    if page is None:
        page = leaf.opened[number] = yield from _open_page(leaf, number)
    return page


def _read_nested(leaf: _Leaf, number: int, rows: Rows) -> Steps[pa.Array]:
    """Return the steps that read rows of one page."""
    return _nested(leaf, (yield from _read_page(leaf, number, rows)), number, rows.count)


def _nested(leaf: _Leaf, values: PageValues, number: int, rows: int) -> pa.Array:
    try:
        return nest(values, leaf.path, leaf.types, rows // leaf.factor)
    except LanceError as error:
        place = leaf.node.place(leaf.column.pages[number], number)
        raise error.located(place) from error.__cause__


def _read_page(leaf: _Leaf, number: int, rows: Rows) -> Steps[PageValues]:
    """Return the steps that read the values of rows of one page."""
    try:
        page = yield from _opened(leaf, number)
        if rows.count % leaf.factor:
            message = f"a page that ends within a fixed-size list of {leaf.factor} items"
            raise FormatError(message)
        values = yield from read_page(page.layout, page.buffers, rows, page.slot)
        if not page.has_blobs:
            return values
        blobs = blobs_of(values.values, page.layout.layers)
        return (yield from _read_blobs(blobs, leaf.file.source.size_bytes))
    except LanceError as error:
        place = leaf.node.place(leaf.column.pages[number], number)
        raise error.located(place) from error.__cause__


@dataclass(frozen=True, slots=True)
class _OpenPage:
    """A page whose layout is known."""

    layout: Layout
    buffers: PageBuffers
    slot: Slot
    has_blobs: bool


def _open_page(leaf: _Leaf, number: int) -> Steps[_OpenPage]:
    page = leaf.column.pages[number]
    layout = yield from _layout(page)
    return _OpenPage(
        layout,
        page_buffers(leaf.node, leaf.column, page),
        Slot(leaf.file.search_cache, (leaf.column.index, number)),
        isinstance(layout, BlobPage) and leaf.path[-1].logical_type != "struct",
    )


def _layout(page: Page) -> Steps[Layout]:
    """Return the steps that get the layout of a page."""
    data = yield from encoding_bytes(page.encoding)
    if data is None:
        message = "page without an encoding"
        raise FormatError(message)
    return parse_page_layout(data)


# --- runs of pages --------------------------------------------------------------------------------


def _row_bytes(leaf: _Leaf) -> int:
    """Return about how many bytes of the file a row of the column has: as many as in its first page."""
    for page in leaf.column.pages[:1]:
        return sum(extent.size_bytes for extent in page.buffers) // max(page.rows, 1) + 1
    return 1


def _runs(leaf: _Leaf, parts: Sequence[_PagePart], run_rows: int) -> Steps[list[list[_PagePart]]]:
    """Return the steps that find out which neighbours to decode together.

    Runs end where multiples of ``run_rows`` begin, so the columns of one field, whose pages mostly
    end at the same rows, give arrays of the same lengths.
    """
    runs: list[list[_PagePart]] = []
    last: Hashable = None
    for number, part in parts:
        page = leaf.column.pages[number]
        kin = None
        if leaf.factor == 1 and part.count == page.rows <= run_rows // SMALL_PAGES:
            kin = kinship((yield from _opened(leaf, number)).layout)
        mark = kin and (kin, int(leaf.column.first_rows[number]) // run_rows)
        if mark is None or mark != last:
            runs.append([])
        runs[-1].append((number, part))
        last = mark
    return runs


def _read_run(leaf: _Leaf, run: Sequence[_PagePart]) -> Steps[list[pa.Array]]:
    """Return the steps that read pages, as one array if they can be decoded together."""
    if len(run) > 1:
        try:
            return [(yield from _read_neighbours(leaf, run))]
        except LanceError:
            pass  # one of them is damaged: that one says so itself
    return (yield from together([_read_nested(leaf, *part) for part in run]))


def _read_neighbours(leaf: _Leaf, run: Sequence[_PagePart]) -> Steps[pa.Array]:
    opened = [leaf.opened[number] for number, _ in run]
    pages = [WholePage(cast("MiniBlock", p.layout), p.buffers, p.slot) for p in opened]
    values = yield from read_neighbours(pages)
    return nest(values, leaf.path, leaf.types, sum(rows.count for _, rows in run))


# --- blobs ----------------------------------------------------------------------------------------


def _read_blobs(blobs: Blobs, file_bytes: int) -> Steps[PageValues]:
    """Return the steps that read the bytes of blobs.  Raises FormatError if one leaves the file."""
    filled = blobs.sizes > 0
    sizes, positions = blobs.sizes[filled], blobs.positions[filled]
    if (sizes > file_bytes).any() or (positions > file_bytes - sizes).any():
        message = "blob outside the file"
        raise FormatError(message)
    ends = np.concatenate([[0], np.cumsum(blobs.sizes)]).astype(np.int64)
    data = pa.py_buffer(b"")
    starts = positions.astype(np.int64)
    stops = starts + sizes.astype(np.int64)
    if len(starts) == 1:
        (data,) = yield [Extent(int(starts[0]), int(sizes[0]))]
    elif len(starts):
        (data,) = yield [Gather(starts, stops)]
    values = VariableBlock(len(blobs.sizes), 64, pa.py_buffer(ends), data)
    return PageValues(values, None, blobs.levels)
