"""One field of several mapped files with pages that are alike: one kernel call for each of its columns.

A table of many small files has as many pages of each column.  To decode them one after the other
costs more than their values do; joined, they count as the pages of one column, whatever rows are read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.read_protocol import run
from pennon.encoding.rows import FileRows
from pennon.encoding.v2_1.point_read import CutRows, KnownPage, PickedChunks, are_alike
from pennon.errors import LanceError
from pennon.file.container.opened_file import ReadRows
from pennon.file.v2_1.assemble_nested import merge, nest, show
from pennon.file.v2_1.leaf_reader import known_pages
from pennon.file.v2_1.multi_file_take import mapped_source
from pennon.file.v2_1.reader import FieldPlan, FieldReader
from pennon.io.store import ObjectReader


@dataclass(frozen=True, slots=True, eq=False)
class JoinableFile:
    """A field of a file: its plan, and all pages of each leaf."""

    plan: FieldPlan
    source: ObjectReader
    pages: tuple[tuple[KnownPage, ...], ...]

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
    return JoinableFile(plan, source, tuple(pages))


def read_joined(files: Sequence[JoinableFile], rows: FileRows) -> pa.Array | None:
    """Return rows of files that are alike, in order; see `pennon.file.open.read_joined`."""
    plan = files[0].plan
    sources = [mapped_source(each.source) for each in files]
    arrays = []
    try:
        for number, leaf in enumerate(plan.leaves):
            pages, cut = _cut(files, number, rows)
            values = PickedChunks.of(pages, cut).pick_mapped(sources)
            if values is None:
                return None
            arrays.append([nest(values, leaf.path, leaf.types, rows.count)])
        return show(merge(plan.tree, arrays)[0], plan.shown)
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
    cut = CutRows.of_files(rows, [each.plan.leaves[leaf].column.first_rows for each in files])
    pairs = zip(cut.files.tolist(), cut.numbers.tolist(), strict=True)
    return [pages[file][page] for file, page in pairs], cut
