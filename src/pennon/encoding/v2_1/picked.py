"""A few rows of mini-block pages: one request and one kernel call for all pages of a column.

A page of which rows were read before is known: where its chunks lie, which rows they hold, and how
its values are picked (`pennon.encoding.v2_1.recipe`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRequest, Extent, Gather, Int64Array, Peek
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.kernels.point_read import pick_pieces
from pennon.encoding.kernels.touched import ChunkTable, cut_rows, find_pieces
from pennon.encoding.rows import FileRows, Rows
from pennon.encoding.v2_1.chunk_index import ChunkIndex
from pennon.encoding.v2_1.page import Levels, PageValues
from pennon.encoding.v2_1.recipe import Recipe
from pennon.errors import FormatError

MOST_ROWS: Final = 1 << 14
"""Of more rows, whole chunks are unpacked."""

Read: TypeAlias = Callable[[Sequence[ByteRequest]], list[pa.Buffer]]
"""Answers one round: the method of an object's reader."""

_CODE_BYTES: Final = 2560


@dataclass(frozen=True, slots=True, eq=False)
class KnownPage:
    """What is remembered of a mini-block page."""

    index: ChunkIndex
    table: ChunkTable
    recipe: Recipe | None

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes."""
        return self.index.size_bytes + _CODE_BYTES


@dataclass(slots=True, eq=False)  # frozen ones take longer to make
class CutRows:
    """Rows of several pages.

    Page ``numbers[i]`` of file ``files[i]`` has the ranges ``cuts[i]`` to ``cuts[i + 1]`` of ``starts``
    and ``ends``, counted from its first row.
    """

    files: Int64Array
    numbers: Int64Array
    cuts: Int64Array
    starts: Int64Array
    ends: Int64Array
    count: int

    @classmethod
    def of_files(cls, rows: FileRows, borders: list[Int64Array]) -> CutRows:
        """Cut rows at the borders of pages, which rise from 0 and reach to the last row of a file."""
        return cls(*cut_rows(borders, rows.cuts, rows.starts, rows.ends), rows.count)

    @classmethod
    def of_pages(cls, rows: Rows, borders: Int64Array) -> CutRows:
        """Cut rows of one file."""
        cuts = np.array([0, len(rows.starts)], np.int64)
        return cls(*cut_rows([borders], cuts, rows.starts, rows.ends), rows.count)

    @classmethod
    def of_page(cls, rows: Rows) -> CutRows:
        """Return the rows of one page."""
        cuts = _ONE_RANGE if len(rows.starts) == 1 else np.array([0, len(rows.starts)], np.int64)
        return cls(_ZERO, _ZERO, cuts, rows.starts, rows.ends, rows.count)


_ZERO = np.zeros(1, np.int64)
_ONE_RANGE = np.array([0, 1], np.int64)


@dataclass(slots=True, eq=False)  # frozen ones take longer to make
class Found:
    """The chunks that hold some rows; see `pennon.encoding.kernels.touched.find_pieces`."""

    pages: Sequence[KnownPage]
    rows: CutRows
    pieces: tuple[Int64Array, Int64Array, Int64Array, Int64Array]
    starts: Int64Array
    ends: Int64Array
    file_cuts: list[int]
    rise: bool
    size_bytes: int

    @classmethod
    def of(cls, pages: Sequence[KnownPage], rows: CutRows) -> Found:
        """Find the chunks of rows of some pages, one for each of ``rows.numbers``."""
        tables = [page.table for page in pages]
        found = find_pieces(tables, rows.files, rows.cuts, rows.starts, rows.ends)
        return cls(pages, rows, *found)

    def packed(self) -> ByteRequest:
        """Return the request for all chunks of the one file, one after the other."""
        if len(self.starts) == 1:
            start = int(self.starts[0])
            return Extent(start, int(self.ends[0]) - start)
        return Gather(self.starts, self.ends)

    def request(self) -> ByteRequest:
        """Return the request for what `pick` looks at, in the one file."""
        is_scattered = len(self.starts) > 1 and self.rise
        return Peek(self.starts, self.ends) if is_scattered else self.packed()

    def pick(self, answer: pa.Buffer) -> PageValues:
        """Return the rows, from the answer to `request`; the pages have recipes that are alike."""
        _, _, packed, positions = self.pieces
        if answer.size == self.size_bytes:
            return self.pick_from([as_bytes(answer)], [0], packed)
        return self.pick_from([as_bytes(answer)], [int(self.starts[0])], positions)

    def pick_mapped(self, sources: Sequence[Bytes | Read]) -> PageValues | None:
        """Return rows of several mapped files: the bytes of each, or what reads them.

        None if chunks do not rise in their file.
        """
        if not self.rise:
            return None
        data, origins = [], []
        for source, low, high in zip(sources, self.file_cuts[:-1], self.file_cuts[1:], strict=True):
            if isinstance(source, np.ndarray):
                data.append(source)
                origins.append(0)
                continue
            request = Peek(self.starts[low:high], self.ends[low:high])
            hull = request.hull
            (answer,) = source([request])
            if answer.size != hull.size_bytes:
                return None
            data.append(as_bytes(answer))
            origins.append(hull.position)
        return self.pick_from(data, origins, self.pieces[3])

    def pick_from(self, data: list[Bytes], origins: list[int], positions: Int64Array) -> PageValues:
        """Return the rows; the chunks of file f lie at ``positions`` from ``origins[f]`` on."""
        recipes = [page.recipe for page in self.pages if page.recipe is not None]
        rep, definition, values, offsets, items = pick_pieces(
            [page.table for page in self.pages],
            [recipe.code for recipe in recipes],
            self.rows.files,
            self.rows.cuts,
            self.rows.starts,
            self.rows.ends,
            self.pieces[0],
            self.pieces[1],
            positions,
            data,
            origins,
        )
        if rep is None and items != self.rows.count:
            message = f"{items} values where {self.rows.count} were expected"
            raise FormatError(message)
        shape = recipes[0].shape
        levels = Levels(rep, definition, shape.layers)
        block = shape.block(items, values, offsets)
        return PageValues(block, self.pages[0].index.dictionary, levels)


def are_alike(pages: Sequence[KnownPage]) -> bool:
    """Tell whether rows of these pages, all of which `can_join`, can be picked together."""
    first = pages[0].recipe
    return all(
        page.recipe is not None and first is not None and page.recipe.shape == first.shape
        for page in pages
    )


def can_join(page: KnownPage | None) -> bool:
    """Tell whether rows of a page can be picked together with others: it has no dictionary of its own."""
    return page is not None and page.recipe is not None and page.index.dictionary is None
