"""A few rows of a field from several files at once: one kernel call for all pages of a column.

A take touches many fragments, and has a row or two in each.  To read them one after the other costs
more than what is read; so where files are mapped, the pages of all of them count as those of one
column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter

import pyarrow as pa

from pennon.encoding.read_protocol import run
from pennon.encoding.rows import FileRows
from pennon.encoding.v2_1.file_bytes import Source
from pennon.encoding.v2_1.point_read import (
    CutRows,
    KnownPage,
    PickedChunks,
    PickedPage,
    are_alike,
)
from pennon.errors import LanceError
from pennon.file.container.opened_file import ReadRows
from pennon.file.v2_1.assemble_nested import merge, nest, show
from pennon.file.v2_1.leaf_reader import Leaf, known_pages, remembered_page
from pennon.file.v2_1.reader import FieldPlan, FieldReader
from pennon.io.mapped import MappedReader
from pennon.io.store import ObjectReader


def read_across(of_files: Sequence[ReadRows], rows: FileRows) -> pa.Array | None:
    """Return rows of one field of several mapped files, those of each file after the other.

    None if the files cannot be read together, as they are of other versions, or something is wrong
    with one: read one by one they say what.
    """
    readers = [each for each in of_files if isinstance(each, FieldReader) and not each.is_apart]
    if len(readers) < len(of_files):
        return None
    try:
        plans = [run(reader.plan(), reader.source.read) for reader in readers]
        first = plans[0]
        if not all(map(partial(_is_like, first), plans, rows.last_ends())):
            return None
        sources = [mapped_source(reader.source) for reader in readers]
        parts = []
        for number in range(len(first.leaves)):
            leaves = [plan.leaves[number] for plan in plans]
            cut = CutRows.of_files(rows, [leaf.column.first_rows for leaf in leaves])
            pages = _known(readers, leaves, cut)
            if not pages or not are_alike(pages):
                return None
            parts.append((pages, cut))
        return pick_rows(first, sources, parts, rows.count)
    except LanceError:
        return None


def pick_rows(
    plan: FieldPlan,
    sources: Sequence[Source],
    parts: Iterable[tuple[Sequence[PickedPage], CutRows]],
    count: int,
) -> pa.Array | None:
    """Return ``count`` rows of a field of several files, given for each leaf its pages and the rows of these.

    The pages of a leaf are alike; ``sources`` are those of `mapped_source`.  None if chunks do not rise in their file.
    Raises FormatError for a page that is damaged.
    """
    arrays = []
    for leaf, (pages, cut) in zip(plan.leaves, parts, strict=True):
        values = PickedChunks.of(pages, cut).pick_mapped(sources)
        if values is None:
            return None
        arrays.append([nest(values, leaf.path, leaf.types, count)])
    return show(merge(plan.tree, arrays)[0], plan.shown)


def _is_like(one: FieldPlan, other: FieldPlan, last_row: int) -> bool:
    """Tell whether two files have the same columns of the same field, with all their rows."""
    return (
        one.field is other.field
        and one.kin is not None
        and one.kin == other.kin
        and last_row <= other.leaves[0].column.rows
    )


def mapped_source(source: ObjectReader) -> Source:
    """Return the bytes of a mapped file; while account is kept of what is looked at, what gives them."""
    if not isinstance(source, MappedReader):
        return source.read
    whole = source.whole()
    return source if whole is None else whole


def _known(readers: Sequence[FieldReader], leaves: Sequence[Leaf], cut: CutRows) -> list[KnownPage]:
    """Return what is known of the pages, reading what is not; none if one cannot be joined."""
    pages = []
    pairs = zip(cut.files.tolist(), cut.numbers.tolist(), strict=True)
    for file, parts in groupby(pairs, key=itemgetter(0)):
        leaf, numbers = leaves[file], [number for _, number in parts]
        found = [remembered_page(leaf, number) for number in numbers]
        if None in found:  # a page is equal to itself alone
            found = run(known_pages(leaf, numbers), leaf.file.source.read)
        for page in found:
            if page is None or not leaf.can_join(page):
                readers[file].is_apart = True
                return []
            pages.append(page)
    return pages
