"""The choice of the read strategy for a request: the rows, their chunks, and the code that reads them.

A column of many pages:

=================  ====================================================================================
page runs          one range of rows: whole pages that follow one another and are encoded alike are
                   decoded as if they were one (`pennon.encoding.v2_1.page_runs`)
point read         single rows, not too many: one request and one kernel call for those of all pages,
                   if these are alike (`pennon.encoding.v2_1.point_read`), and also for those of several
                   files (`pennon.file.v2_1.multi_file_take`; who takes rows from a table decides that)
page by page       other rows: pages side by side, their values put together while they are bytes, if they are few
=================  ====================================================================================

And rows of one mini-block page:

=================  ====================================================================================
whole page         all rows: the chunks are read along with their index, and unpacked at once; so is the part of
                   it where one range of rows likely is (`ahead_of_index`)
point read         few rows: just these are looked for in their chunks, by one kernel call; so are some thousand
                   neighbours that are numbers, lists of as many numbers each, or strings
chunks             others: the chunks that hold the rows are unpacked whole
=================  ====================================================================================

Pages of other layouts have no chunks: what may be read in vain there, to save a round or a request, is
said here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

import numpy as np

from pennon.core.byte_ranges import ByteRange, Int64Array
from pennon.core.units import KIB, MIB
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.layouts import BlobPage, FullZip, Layout, MiniBlock
from pennon.encoding.v2_1.point_read import Recipe, recipe_of


class Strategy(Enum):
    """The chosen strategy, in words."""

    PAGE_RUNS = "whole pages, neighbours decoded as one"
    PAGE_BY_PAGE = "pages side by side"
    WHOLE_PAGE = "all chunks along with their index"
    POINT_READ = "point read by one kernel call"
    CHUNKS = "chunks that hold the rows, unpacked whole"
    ROW_INDEX = "values one by one, found in the row index"
    LEVELS = "levels only"
    BLOBS = "descriptions, then the bytes of the values"


_WIDEST_NUMBER: Final = 64
"""Bits of a value that is copied without a thought."""

# Members of an enumeration are slow to look up.
PAGE_RUNS: Final = Strategy.PAGE_RUNS
PAGE_BY_PAGE: Final = Strategy.PAGE_BY_PAGE
WHOLE_PAGE: Final = Strategy.WHOLE_PAGE
POINT_READ: Final = Strategy.POINT_READ
CHUNKS: Final = Strategy.CHUNKS


# --- columns --------------------------------------------------------------------------------------

MOST_POINT_ROWS: Final = 1 << 18
"""Of more rows, whole chunks are unpacked."""

RUN_BYTES: Final = MIB
SMALL_PAGES: Final = 4
"""Pages are decoded together until they have about `RUN_BYTES`, if so many at least are within."""


def for_column(rows: Rows, pages: int) -> Strategy:
    """Return how rows of a column of so many pages are read; a point read if its pages are alike."""
    if rows.is_contiguous:
        return PAGE_RUNS
    return POINT_READ if pages > 1 and 0 < rows.count <= MOST_POINT_ROWS else PAGE_BY_PAGE


APART_BYTES: Final = 32 * KIB
"""Values of a page that are so many bytes cost more to copy than an array of their own."""


def stay_apart(size_bytes: int, pages: int) -> bool:
    """Return whether values of several pages become an array each, given the bytes of all."""
    return size_bytes >= pages * APART_BYTES


def rows_of_run(row_bytes: int) -> int:
    """Return how many rows of ``row_bytes`` in the file are decoded together, about."""
    return max(RUN_BYTES // row_bytes, 1)


def may_join_run(wanted: int, page_rows: int, run_rows: int) -> bool:
    """Return whether a page may be decoded with its neighbours, given the number of its rows that are wanted."""
    return wanted == page_rows <= run_rows // SMALL_PAGES


# --- pages ----------------------------------------------------------------------------------------

FEW_POINT_ROWS: Final = 256
"""Fewer rows are picked one by one in any case: a kernel call costs less than several."""

MOST_POINT_NUMBERS: Final = 1 << 14
"""Of more neighbours that are numbers, or lists of as many each, chunks are unpacked whole."""

MOST_POINT_STRINGS: Final = 1 << 12
"""The same of strings; of short ones twice as many."""

SHORT_BYTES: Final = 16
"""What a row of short strings takes in the file, at most."""

FEW_ENTRIES: Final = 1024
"""So many neighbouring entries of the row index of a full-zip page are read in one go."""

KEPT_LEVEL_BYTES: Final = 256 * KIB
"""Levels of a page of one value are read whole and remembered, unless they are longer."""


def is_whole(rows: Rows, page_rows: int) -> bool:
    """Return whether all rows of a page are wanted: then nothing has to be looked up first."""
    return rows.is_contiguous and rows.count == page_rows


LEAST_AHEAD_BYTES, MOST_AHEAD_BYTES = 32 * KIB, 64 * KIB
AHEAD_SHARE = 64
AHEAD_RANGE_BYTES = MIB
"""A longer range takes its time to come: a round less is not worth holding more at once."""
SMALL_PAGE_BYTES = 256 * KIB
"""A store sends so many bytes in less time than it takes to answer."""


def ahead_of_index(rows: Rows, page_rows: int, data: ByteRange) -> ByteRange | None:
    """Return which bytes of a mini-block page's chunks are read along with their index, to save a round.

    All, if all rows are wanted.  Of one range of rows those where it would lie if all chunks were of one size, and
    some more on both sides, a `AHEAD_SHARE`-th of the page: most pages are about like that; none if that is more than
    `AHEAD_RANGE_BYTES`.  Of other rows all of a page that has no more than `SMALL_PAGE_BYTES`, or none.
    """
    if is_whole(rows, page_rows):
        return data
    if not rows.is_contiguous:
        return data if data.size_bytes <= SMALL_PAGE_BYTES else None
    if not page_rows:
        return None
    margin = min(max(data.size_bytes // AHEAD_SHARE, LEAST_AHEAD_BYTES), MOST_AHEAD_BYTES)
    start = max(int(rows.starts[0]) * data.size_bytes // page_rows - margin, 0)
    end = min(-(-rows.end * data.size_bytes // page_rows) + margin, data.size_bytes)
    if end - start > AHEAD_RANGE_BYTES:
        return None
    return ByteRange(data.position + start, end - start)


def for_chunks(
    rows: Rows, first_rows: Int64Array, chunks: Int64Array, recipe: Recipe | None, row_bytes: int
) -> Strategy:
    """Return the strategy for rows of a mini-block page that lie in ``chunks`` of its chunks.

    ``first_rows`` are those of all chunks of the page, and the number of its rows at last.  A row has about
    ``row_bytes`` in the file.
    """
    if recipe is None or rows.count > MOST_POINT_ROWS:
        return CHUNKS
    if is_point_read(rows, recipe, row_bytes):
        return POINT_READ
    held = first_rows[chunks[-1] + 1] - first_rows[chunks[0]]
    return POINT_READ if 2 * rows.count < held else CHUNKS


def is_point_read(rows: Rows, recipe: Recipe | None, row_bytes: int) -> bool:
    """Return whether rows of a mini-block page are picked, wherever its chunks begin and end."""
    if recipe is None or rows.count > MOST_POINT_ROWS:
        return False
    return (
        len(rows.starts) != 1
        or rows.count < FEW_POINT_ROWS
        or rows.count <= most_in_a_row(recipe, row_bytes)
    )


MOST_JOINED: Final = 1 << 62
"""Neighbours in each of several files that are read together: numbers of whole bytes, and lists of as many each, cost
as much as if each file's chunks were unpacked whole."""

_BYTE: Final = 8


def most_of_each_file(recipe: Recipe, row_bytes: int) -> int:
    """Return of how many neighbours in each file a point read of several files costs less than to read file by file."""
    shape = recipe.shape
    if shape.is_string:
        return max(most_in_a_row(recipe, row_bytes), MOST_POINT_STRINGS)
    if not recipe.is_flat or shape.bits < _BYTE:
        return MOST_POINT_NUMBERS
    return MOST_JOINED


def most_in_a_row(recipe: Recipe, row_bytes: int) -> int:
    """Return of how many neighbours a point read costs less than to unpack their chunks, even if that are all."""
    shape = recipe.shape
    if not recipe.is_flat or shape.bits > _WIDEST_NUMBER:
        return 0
    if shape.is_string:
        return MOST_POINT_STRINGS * 2 if row_bytes <= SHORT_BYTES else MOST_POINT_STRINGS
    return MOST_POINT_NUMBERS


def reads_entries_at_once(rows: Rows) -> bool:
    """Return whether the entries of all rows in a row index are read, or just the outer two."""
    return rows.is_contiguous and rows.count <= FEW_ENTRIES


def keeps_levels(rows: Rows, page_rows: int, level_bytes: int) -> bool:
    """Return whether all levels of a page of one value are read for some rows, and remembered."""
    return rows.count < page_rows and level_bytes <= KEPT_LEVEL_BYTES


# --- in words -------------------------------------------------------------------------------------

_WHY: Final[Mapping[Strategy, str]] = {
    PAGE_RUNS: f"one range of rows; runs of about {RUN_BYTES >> 20} MiB, of {SMALL_PAGES} pages or more",
    PAGE_BY_PAGE: f"pages that differ, or more than {MOST_POINT_ROWS} single rows",
    WHOLE_PAGE: "all rows of the page",
    POINT_READ: f"up to {MOST_POINT_ROWS} single rows, to {MOST_POINT_NUMBERS} neighbours that are numbers or lists of as many each "
    f"({MOST_POINT_STRINGS} strings, twice as many short ones), or fewer others than {FEW_POINT_ROWS} or than half of their chunks",
    CHUNKS: f"more than {MOST_POINT_ROWS} rows, {MOST_POINT_STRINGS} strings or half of what chunks of others hold, "
    "or values that no point read knows",
    Strategy.ROW_INDEX: f"entries of up to {FEW_ENTRIES} neighbours at once",
    Strategy.LEVELS: f"kept if they are up to {KEPT_LEVEL_BYTES >> 10} KiB",
    Strategy.BLOBS: "values lie outside of the page",
}
"""When each is chosen."""


def for_page(rows: Rows, layout: Layout, page_rows: int) -> Strategy:
    """Return how rows of one page are read, as far as its layout tells: as if it were one chunk, and strings were long."""
    if isinstance(layout, BlobPage):
        return Strategy.BLOBS
    if isinstance(layout, FullZip):
        return Strategy.ROW_INDEX
    if not isinstance(layout, MiniBlock):
        return Strategy.LEVELS
    if is_whole(rows, page_rows):
        return WHOLE_PAGE
    one_chunk = np.array([0, page_rows], np.int64)
    return for_chunks(rows, one_chunk, one_chunk[:1], recipe_of(layout), SHORT_BYTES + 1)


def describe(rows: Rows, pages: Sequence[tuple[Layout, int]], total: int, runs: int) -> str:
    """Return in words how rows of a column of ``total`` pages are read, and why.

    ``pages`` are the layouts of those that hold the rows, and their numbers of rows; ``runs`` is how
    many groups of neighbours they make.
    """
    if not pages:
        return "nothing to read"
    words = f"{len(pages)} of {total} pages" if total > 1 else "1 page"
    chosen = for_column(rows, total)
    if chosen is POINT_READ and not _are_alike([layout for layout, _ in pages]):
        chosen = PAGE_BY_PAGE
    if chosen is not POINT_READ and len(pages) == 1:
        chosen = for_page(rows, *pages[0])
    elif chosen is PAGE_RUNS:
        words += f", {runs} run{'s' * (runs > 1)}"
    return f"{chosen.value} ({words}): {_WHY[chosen]}"


def _are_alike(layouts: Sequence[Layout]) -> bool:
    """Return whether rows of pages can be picked together; see `pennon.encoding.v2_1.point_read`."""
    shapes = set()
    for layout in layouts:
        if not isinstance(layout, MiniBlock) or layout.dictionary is not None:
            return False
        recipe = recipe_of(layout)
        if recipe is None:
            return False
        shapes.add(recipe.shape)
    return len(shapes) == 1
