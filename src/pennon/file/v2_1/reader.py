"""Reading fields of files of versions 2.1 and 2.2.

All pages of all leaves of a field are read side by side: one round for what the pages say of
themselves (unless it is remembered), one for the values; blobs take one more.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, Gather
from pennon.core.cached_property import cached_property
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.encoding.block import VariableBlock
from pennon.encoding.read_protocol import Steps, together
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1 import strategy
from pennon.encoding.v2_1.blob_page import Blobs, blobs_of
from pennon.encoding.v2_1.concat_pages import join_pages, value_bytes
from pennon.encoding.v2_1.layouts import MiniBlock
from pennon.encoding.v2_1.page import PageValues
from pennon.encoding.v2_1.page_runs import WholePage, read_neighbours
from pennon.encoding.v2_1.pages import read_page
from pennon.encoding.v2_1.point_read import CutRows, KnownPage, PickedChunks, are_alike
from pennon.errors import ArgumentError, Breadcrumb, FormatError, LanceError
from pennon.file.container.generation import FileSource, Generation
from pennon.file.container.node import pages_of
from pennon.file.container.opened_file import AtOnce, ReadsAtOnce
from pennon.file.v2_1.assemble_nested import merge, nest, show
from pennon.file.v2_1.leaf_reader import (
    Leaf,
    known_pages,
    opened_page,
    opened_pages,
    remembered_page,
)
from pennon.file.v2_1.tree import Tree, column_index, columns_of_schema, described
from pennon.io.store import ObjectReader
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field

_PagePart: TypeAlias = tuple[int, Rows]
"""The number of a page, and rows of it."""


class FieldReader(ReadsAtOnce):
    """See `pennon.file.container.opened_file.OpenedFile.field_reader`.

    What does not depend on the rows is found out once, by the first read.
    """

    __slots__ = ("_column_of", "_field", "_file", "_plan", "is_apart")

    def __init__(self, file: FileSource, field: Field, column_of: Mapping[FieldId, int]) -> None:
        self._file = file
        self._field = field
        self._column_of = column_of
        self._plan: FieldPlan | None = None
        self.is_apart = False
        """Whether it was found that pages cannot be read together with those of other files."""

    def __call__(self, rows: Rows) -> Steps[list[pa.Array]]:
        """Return the steps that read rows."""
        file = self._file
        if len(rows.starts) and (rows.ends[-1] > file.num_rows or rows.starts[0] < 0):
            message = f"rows up to {rows.end} of a file that has {file.num_rows} rows"
            raise ArgumentError(message, where=Breadcrumb(file=file.source.path))
        try:
            plan = self._plan or (yield from self.plan())
            return (yield from plan.read(rows))
        except LanceError as error:
            place = Breadcrumb(file=file.source.path, column=self._field.name)
            raise error.located(place) from error.__cause__

    def at_once(self, rows: Rows) -> AtOnce | None:
        """See `pennon.file.container.opened_file.ReadsAtOnce`."""
        plan = self._plan
        if plan is None or len(plan.leaves) > 1 or plan.kin is None:
            return None
        found = _page_of(plan.leaves[0], rows)
        if found is None:
            return None
        page, inside = found
        try:
            pieces = PickedChunks.of([page], CutRows.of_page(inside))
        except LanceError:
            return None
        return pieces.request(), partial(_picked, plan, pieces)

    def describe(self, rows: Rows) -> Steps[list[str]]:
        """Return the steps that say in words how rows would be read, a line for each column.

        They read what describes the columns, and nothing of the pages.
        """
        plan = yield from self.plan()
        return (yield from together([_describe(leaf, rows, plan.run_rows) for leaf in plan.leaves]))

    @property
    def source(self) -> ObjectReader:
        """Return where the file's bytes come from."""
        return self._file.source

    def plan(self) -> Steps[FieldPlan]:
        """Return the steps that find out what does not depend on the rows."""
        if self._plan is None:
            self._plan = yield from self._make_plan()
        return self._plan

    def _make_plan(self) -> Steps[FieldPlan]:
        """Return the steps that read the metadata of the columns."""
        file, column_of = self._file, self._column_of
        field = described(self._field)
        tree = Tree.of(field, column_of)
        paths = list(tree.paths())
        columns = yield from file.read_columns([column_index(path, column_of) for path in paths])
        pairs = zip(paths, columns, strict=True)
        leaves = tuple(Leaf.of(file, column_of, tree, path, column) for path, column in pairs)
        shown = field_to_arrow(field).type
        return FieldPlan(self._field, tree, leaves, shown, _kin(leaves))


def describe(
    file: FileSource, field: Field, column_of: Mapping[FieldId, int], rows: Rows
) -> Steps[list[str]]:
    """Return the steps of `pennon.file.open.describe_read`."""
    return FieldReader(file, field, column_of).describe(rows)


COLUMNS: Final[Generation[FileSource]] = Generation(FieldReader, columns_of_schema)
"""How files of versions 2.1 and 2.2 are read."""


@dataclass(frozen=True)
class FieldPlan:
    """The leaves of a field, and the type that users see."""

    field: Field
    tree: Tree
    leaves: tuple[Leaf, ...]
    shown: pa.DataType
    kin: tuple[int, ...] | None
    """The ids of the leaves: plans of one field that have the same may be read together.

    None if a leaf has not just the rows of the file.
    """

    @cached_property
    def run_rows(self) -> int:
        """Return how many rows of neighbouring pages are decoded together."""
        return strategy.rows_of_run(max([leaf.row_bytes for leaf in self.leaves]))

    def read(self, rows: Rows) -> Steps[list[pa.Array]]:
        """Return the steps that read all leaves side by side."""
        chunks = yield from together([_read_leaf(self, leaf, rows) for leaf in self.leaves])
        return [show(array, self.shown) for array in merge(self.tree, chunks)]


def _picked(plan: FieldPlan, pieces: PickedChunks, answer: pa.Buffer) -> pa.Array | None:
    """Return the values of pieces of a page; None if it is damaged."""
    leaf = plan.leaves[0]
    try:
        array = nest(pieces.pick(answer), leaf.path, leaf.types, pieces.rows.count)
    except LanceError:
        return None
    return show(array, plan.shown)


def _page_of(leaf: Leaf, rows: Rows) -> tuple[KnownPage, Rows] | None:
    """Return the page that has all of some rows, if these are picked from it and it is known; and the rows in it."""
    if not rows.count or rows.starts[0] < 0:
        return None
    borders, number = leaf.column.first_rows, 0
    if len(borders) > 2:
        number = int(borders.searchsorted(rows.starts[0], "right")) - 1
    if number > len(borders) - 2 or rows.ends[-1] > borders[number + 1]:
        return None
    page = remembered_page(leaf, number)
    if page is None or not strategy.is_point_read(rows, page.recipe, page.row_bytes):
        return None
    if number:
        rows = Rows(rows.starts - borders[number], rows.ends - borders[number], rows.count)
    return page, rows


def _kin(leaves: Sequence[Leaf]) -> tuple[int, ...] | None:
    for leaf in leaves:
        if leaf.factor != 1 or leaf.column.rows != leaf.file.num_rows:
            return None
    return tuple([leaf.path[-1].id for leaf in leaves])


def _read_leaf(plan: FieldPlan, leaf: Leaf, rows: Rows) -> Steps[list[pa.Array]]:
    """Return the steps that read a column: arrays of the whole path.

    There is one for each page touched, or for a run of pages that are alike: of about `FieldPlan.run_rows`
    rows if all rows of the pages are wanted, of any number if they are single rows.
    """
    leaf.node.check_total(leaf.column)
    wanted = rows if leaf.factor == 1 else rows.scaled(leaf.factor)
    chosen = strategy.for_column(wanted, len(leaf.column.pages))
    if chosen is strategy.POINT_READ:
        picked = yield from _pick(leaf, wanted)
        if picked is not None:
            return [picked]
    parts = list(pages_of(leaf.node, leaf.column, wanted))
    if len(parts) == 1:
        return [(yield from _read_nested(leaf, *parts[0]))]
    if chosen is strategy.PAGE_RUNS:
        runs = yield from _runs(leaf, parts, plan.run_rows)
        arrays = yield from together([_read_run(leaf, run) for run in runs])
        return [array for chunks in arrays for array in chunks]
    values = yield from together([_read_page(leaf, *part) for part in parts])
    size_bytes = sum([value_bytes(each) for each in values])
    joined = None if strategy.stay_apart(size_bytes, len(values)) else join_pages(values)
    if joined is None:
        pairs = zip(values, parts, strict=True)
        return [_nested(leaf, page, number, part.count) for page, (number, part) in pairs]
    return [_nested(leaf, joined, parts[0][0], wanted.count)]


def _describe(leaf: Leaf, rows: Rows, run_rows: int) -> Steps[str]:
    """Return the steps that say how `_read_leaf` would read a column."""
    wanted = rows if leaf.factor == 1 else rows.scaled(leaf.factor)
    parts = list(pages_of(leaf.node, leaf.column, wanted))
    runs = yield from _runs(leaf, parts, run_rows)
    numbers = [number for number, _ in parts]
    opened = yield from opened_pages(leaf, numbers)
    pages = [(p.layout, leaf.column.pages[n].rows) for n, p in zip(numbers, opened, strict=True)]
    held = parts[0][1] if len(parts) == 1 else wanted
    words = strategy.describe(held, pages, len(leaf.column.pages), len(runs))
    return f"{'.'.join(field.name for field in leaf.path)}: {words}"


def _pick(leaf: Leaf, wanted: Rows) -> Steps[pa.Array | None]:
    """Return the steps that read rows of pages that are alike; None if they are not.

    None as well if one of them is damaged: which one shows when they are read one by one.
    """
    rows = CutRows.of_pages(wanted, leaf.column.first_rows)
    numbers = rows.numbers.tolist()
    known = yield from known_pages(leaf, numbers)
    pages = [page for page in known if page is not None and leaf.can_join(page)]
    if len(pages) < len(known) or not are_alike(pages):
        return None
    try:
        found = PickedChunks.of(pages, rows)
        (answer,) = yield [found.request()]
        values = found.pick(answer)
        return _nested(leaf, values, numbers[0], wanted.count)
    except FormatError:
        return None


def _read_nested(leaf: Leaf, number: int, rows: Rows) -> Steps[pa.Array]:
    """Return the steps that read rows of one page."""
    return _nested(leaf, (yield from _read_page(leaf, number, rows)), number, rows.count)


def _nested(leaf: Leaf, values: PageValues, number: int, rows: int) -> pa.Array:
    try:
        return nest(values, leaf.path, leaf.types, rows // leaf.factor)
    except LanceError as error:
        place = leaf.node.place(leaf.column.pages[number], number)
        raise error.located(place) from error.__cause__


def _read_page(leaf: Leaf, number: int, rows: Rows) -> Steps[PageValues]:
    """Return the steps that read the values of rows of one page."""
    try:
        page = yield from opened_page(leaf, number)
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


# --- runs of pages --------------------------------------------------------------------------------


def _runs(leaf: Leaf, parts: Sequence[_PagePart], run_rows: int) -> Steps[list[list[_PagePart]]]:
    """Return the steps that find out which neighbours to decode together.

    Runs end where multiples of ``run_rows`` begin, so the columns of one field, whose pages mostly
    end at the same rows, give arrays of the same lengths.
    """
    runs: list[list[_PagePart]] = []
    last: Hashable = None
    for number, part in parts:
        page = leaf.column.pages[number]
        kin = None
        if leaf.factor == 1 and strategy.may_join_run(part.count, page.rows, run_rows):
            kin = leaf.kinship((yield from opened_page(leaf, number)).layout)
        mark = kin and (kin, int(leaf.column.first_rows[number]) // run_rows)
        if mark is None or mark != last:
            runs.append([])
        runs[-1].append((number, part))
        last = mark
    return runs


def _read_run(leaf: Leaf, run: Sequence[_PagePart]) -> Steps[list[pa.Array]]:
    """Return the steps that read pages, as one array if they can be decoded together."""
    if len(run) > 1:
        try:
            return [(yield from _read_neighbours(leaf, run))]
        except LanceError:
            pass  # one of them is damaged: that one says so itself
    return (yield from together([_read_nested(leaf, *part) for part in run]))


def _read_neighbours(leaf: Leaf, run: Sequence[_PagePart]) -> Steps[pa.Array]:
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
        (data,) = yield [ByteRange(int(starts[0]), int(sizes[0]))]
    elif len(starts):
        (data,) = yield [Gather(starts, stops)]
    values = VariableBlock(len(blobs.sizes), 64, pa.py_buffer(ends), data)
    return PageValues(values, None, blobs.levels)
