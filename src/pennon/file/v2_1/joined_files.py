"""One field of several mapped files with pages that are alike: one kernel call for each of its columns.

A table of many small files has as many pages of each column.  To decode them one after the other
costs more than their values do; joined, they count as the pages of one column, whatever rows are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.read_protocol import run
from pennon.encoding.rows import FileRows
from pennon.encoding.v2_1.point_read import CutRows, PickedPage, PlainPage, are_alike
from pennon.encoding.v2_1.strategy import MOST_JOINED, most_of_each_file
from pennon.errors import LanceError
from pennon.file.container.column_metadata import Direct
from pennon.file.container.opened_file import ReadRows
from pennon.file.kernels.column_metadata import find_plain_pages
from pennon.file.v2_1.leaf_reader import Leaf, known_pages
from pennon.file.v2_1.multi_file_take import mapped_source, pick_rows
from pennon.file.v2_1.plain_pages import SAME, PlainLayout, pages_of_files, plain_layout, version_of
from pennon.file.v2_1.reader import FieldPlan, FieldReader
from pennon.io.mapped import MappedReader
from pennon.io.store import ObjectReader


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

    @property
    def most_rows(self) -> int:
        """See `pennon.file.container.opened_file.JoinableFile`."""
        pairs = zip(self.plan.leaves, self.pages, strict=True)
        return min([_most_rows(leaf, pages[0]) for leaf, pages in pairs], default=MOST_JOINED)


def _most_rows(leaf: Leaf, page: PickedPage) -> int:
    return 0 if page.recipe is None else most_of_each_file(page.recipe, leaf.row_bytes)


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
    whole = [each.glimpse() for each in files if isinstance(each, MappedReader)]
    model = _Model.of(like)
    if model is None or len(whole) < len(files):
        return [None] * len(files)
    indices = [[each.get(leaf.path[-1].id, -1) for each in columns] for leaf in model.leaves]
    table = find_plain_pages(
        whole, np.array(rows, np.int64), np.array(indices, np.int64), model.encodings, model.version
    )
    pages = model.pages(whole, rows, table)
    is_same = (table[:, :, 0] == SAME).all(axis=0).tolist()
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
    leaves: tuple[Leaf, ...]
    encodings: list[bytes]
    layouts: list[PlainLayout]

    @classmethod
    def of(cls, file: JoinableFile) -> _Model | None:
        """Return the model that the file of a plan is; None if its pages are not plain."""
        leaves = file.plan.leaves
        found = [leaf.column.pages[0].encoding for leaf in leaves]
        encodings = [each.data for each in found if isinstance(each, Direct)]
        layouts = [plain for each in encodings if (plain := plain_layout(each)) is not None]
        if len(layouts) < len(leaves) or not isinstance(file.source, MappedReader):
            return None
        return cls(version_of(file.source.glimpse()), leaves, encodings, layouts)

    def pages(
        self, files: list[Bytes], rows: Sequence[int], table: Int64Array
    ) -> list[list[PlainPage | None]]:
        """Return the page of each file, for each leaf."""
        return [
            [
                page if leaf.can_join(page) else None
                for page in pages_of_files(known, files, rows, numbers)
            ]
            for leaf, known, numbers in zip(self.leaves, self.layouts, table, strict=True)
        ]


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
