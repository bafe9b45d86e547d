"""Columns of one page whose rows are no lists: found, and made ready to be picked from, many at a time.

Small files have such columns, and wide files have many of them.  To read what a column says of itself takes
longer than its values do, if it is done column by column: so the numbers of all come out of one kernel call.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.kernels.chunk_index import flat_tables
from pennon.encoding.v2_1.chunk_index import MOST_CHUNK_VALUES
from pennon.encoding.v2_1.codecs import CODECS
from pennon.encoding.v2_1.layouts import MiniBlock, max_repetition
from pennon.encoding.v2_1.mini_block import decode_items
from pennon.encoding.v2_1.point_read import PlainPage, Recipe, can_join, recipe_of
from pennon.errors import LanceError
from pennon.file.kernels.column_metadata import find_plain_pages
from pennon.file.v2_1.leaf_reader import parse_page_layout

SAME, OTHER = 1, 2
"""The first number of a page in the result of `find_plain_pages`: its encoding is the model's, or another one."""
_VERSION: Final = 8
"""The version is the last 8 bytes of a file."""
_ITEMS, _ENCODING = 5, 7
"""The places of two pairs in that result: those of the dictionary's buffer and of the encoding."""


@dataclass(frozen=True, slots=True, eq=False)
class PlainLayout:
    """The layout of mini-block pages without lists, and how to pick their values."""

    layout: MiniBlock
    recipe: Recipe


@lru_cache(maxsize=1024)
def plain_layout(encoding: bytes) -> PlainLayout | None:
    """Return what an encoding says of mini-block pages without lists; None if it is another one, or damaged."""
    try:
        layout = parse_page_layout(encoding)
        if not isinstance(layout, MiniBlock) or max_repetition(layout.layers):
            return None
        recipe = recipe_of(layout)
    except LanceError:
        return None
    return None if recipe is None else PlainLayout(layout, recipe)


def version_of(whole: Bytes) -> bytes:
    """Return the bytes of a file that say its version."""
    return whole[-_VERSION:].tobytes()


def pages_of_files(
    known: PlainLayout, files: list[Bytes], rows: Sequence[int], numbers: Int64Array
) -> list[PlainPage | None]:
    """Return the page of each file that `find_plain_pages` tells of; None where it is none that can be joined.

    Those that are the `SAME` are encoded as ``known`` says.
    """
    pages = _alike(known, files, rows, numbers)
    for at in np.flatnonzero(numbers[:, 0] == OTHER).tolist():
        start, end = numbers[at, _ENCODING:].tolist()
        other = plain_layout(files[at][start:end].tobytes())
        if other is not None:
            mine = numbers[at : at + 1].copy()
            mine[0, 0] = SAME
            pages[at : at + 1] = _alike(other, files[at : at + 1], rows[at : at + 1], mine)
    return pages


def pages_of_columns(whole: Bytes, rows: int, columns: Sequence[int]) -> list[PlainPage | None]:
    """Return the page of columns of one file that has so many rows; None for one that is not such."""
    count = len(columns)
    numbers = find_plain_pages(
        [whole],
        np.array([rows], np.int64),
        np.array(columns, np.int64).reshape(count, 1),
        [b"\0"] * count,
        version_of(whole),
    )[:, 0]
    alike: dict[bytes, list[int]] = {}
    for at in np.flatnonzero(numbers[:, 0]).tolist():
        start, end = numbers[at, _ENCODING:].tolist()
        alike.setdefault(whole[start:end].tobytes(), []).append(at)
    pages: list[PlainPage | None] = [None] * count
    for encoding, places in alike.items():
        known = plain_layout(encoding)
        if known is None:
            continue
        mine = numbers[places]
        mine[:, 0] = SAME
        found = _alike(known, [whole] * len(places), [rows] * len(places), mine)
        for at, page in zip(places, found, strict=True):
            pages[at] = page
    return pages


def _alike(
    known: PlainLayout, files: list[Bytes], rows: Sequence[int], numbers: Int64Array
) -> list[PlainPage | None]:
    """Return the pages that are the `SAME`."""
    layout, recipe = known.layout, known.recipe
    width = 4 if layout.is_large else 2
    tables = flat_tables(files, numbers, width, layout.num_items, MOST_CHUNK_VALUES)
    has_items = layout.dictionary is not None
    pages: list[PlainPage | None] = []
    places = numbers[:, _ITEMS : _ITEMS + 2].tolist()
    for table, count, whole, (first, size) in zip(tables, rows, files, places, strict=True):
        if table is None or count != layout.num_items or has_items != (first >= 0):
            pages.append(None)
        elif not has_items:
            pages.append(PlainPage(table, recipe))
        else:
            page = _with_items(PlainPage(table, recipe), layout, whole[first : first + size])
            pages.append(page)
    return pages


def _with_items(page: PlainPage, layout: MiniBlock, data: Bytes) -> PlainPage | None:
    """Return a page with its dictionary; None if that cannot be joined with others."""
    try:
        found = PlainPage(page.table, page.recipe, decode_items(layout, data, CODECS))
    except LanceError:
        return None
    return found if can_join(found) else None
