"""A few rows of mini-block pages: one request and one kernel call for all pages of a column.

Most pages are made of a few encodings: plain and bit-packed numbers, byte strings, FSST, and plain
fixed-size lists; levels are packed numbers or runs.  For those a page has a recipe, by which the kernel picks rows without unpacking the
rest; the others are decoded chunk by chunk (`pennon.encoding.v2_1.codecs`).

A page of which rows were read before is known: where its chunks lie, which rows they hold, and its
recipe.  When rows are read like this, `pennon.encoding.v2_1.strategy` says.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest, Gather, Int64Array, SparseRead
from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import allocate
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.block import (
    Block,
    FixedSizeListBlock,
    FixedWidthBlock,
    VariableBlock,
    block_bytes,
)
from pennon.encoding.kernels.chunk_lookup import ChunkTable, cut_rows, find_pieces
from pennon.encoding.kernels.point_read import PickCode, pick_pieces
from pennon.encoding.rows import FileRows, Rows
from pennon.encoding.symbol_table import parse_symbol_table
from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.chunk_index import ChunkIndex
from pennon.encoding.v2_1.dictionary import are_like, can_join_dictionary, join_dictionaries
from pennon.encoding.v2_1.file_bytes import Source, bytes_of_each
from pennon.encoding.v2_1.layouts import Layers, MiniBlock, max_repetition, max_visible
from pennon.encoding.v2_1.page import LEVEL_BITS, NO_BITS, Levels, PageValues, visible_levels
from pennon.errors import FormatError

_PAGE_BYTES: Final = 256
_CODE_BYTES: Final = 2560
"""What a recipe takes in memory."""

_NOTHING, _BYTES, _BITS, _INLINE, _PACKED, _STRINGS, _RUNS, _ZEROS = range(8)
_WORDS: Final = (8, 16, 32, 64)
_LENGTH_BITS: Final = (8, 16, 32)
_WORD_BYTES: Final = 8
_RECIPES: Final = 3
"""Pages of one column are mostly encoded in few ways; to look for more would cost what it saves."""

Code: TypeAlias = tuple[int, int, int]
"""Kind, bits and width of an encoding, as the kernel takes them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The output of picked values; pages of one shape may be picked together."""

    layers: Layers
    has_definition: bool
    is_string: bool
    bits: int
    """Of a value, or of an item of a fixed-size list."""
    dimension: int | None = None

    def block(self, rows: int, values: Bytes, offsets: np.ndarray | None) -> Block:
        """Return a block of ``rows`` values."""
        data = pa.py_buffer(values)
        if offsets is not None:
            return VariableBlock(rows, 8 * offsets.itemsize, pa.py_buffer(offsets), data)
        if self.dimension is None:
            return FixedWidthBlock(rows, self.bits, data)
        items = FixedWidthBlock(rows * self.dimension, self.bits, data)
        return FixedSizeListBlock(rows, self.dimension, items)


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """See the module."""

    code: PickCode
    shape: Shape
    is_flat: bool
    """Whether each row is one value."""
    value_bytes: int | None
    """Of each row; None if these differ, or are no whole bytes."""


def recipe_of(layout: MiniBlock) -> Recipe | None:
    """Return the recipe of a page, None if there is none.

    Raises FormatError if its FSST symbols are broken.
    """
    rep, definition = _levels_code(layout.rep), _levels_code(layout.definition)
    top = max_repetition(layout.layers)
    values = _values_code(layout.values)
    if rep is None or definition is None or values is None or layout.num_buffers != 1:
        return None
    if (top > 0) != (layout.rep is not None):
        return None
    numbers = (*rep, *definition, *values, int(layout.is_large), top, max_visible(layout.layers))
    bits, dimension = values[1], None
    if isinstance(layout.values, e.FixedSizeList):
        dimension = layout.values.dimension
        bits //= dimension
    is_string = values[0] == _STRINGS
    shape = Shape(
        layout.layers, layout.definition is not None, is_string, 0 if is_string else bits, dimension
    )
    is_even = not is_string and top == 0 and values[1] % 8 == 0
    value_bytes = values[1] // 8 if is_even else None
    return Recipe(_pick_code(numbers, layout.values), shape, top == 0, value_bytes)


class Recipes:
    """Makes the recipes of pages, one for those that are encoded alike, as far as it remembers."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: list[tuple[Hashable, Recipe | None]] = []

    def of(self, layout: MiniBlock) -> Recipe | None:
        """See `recipe_of`."""
        kin = layout.kin
        for known, made in self._made:
            if known == kin:
                return made
        recipe = recipe_of(layout)
        self._made = [(kin, recipe), *self._made[:_RECIPES]]
        return recipe


def _pick_code(numbers: tuple[int, ...], values: e.Encoding) -> PickCode:
    table = parse_symbol_table(values.symbol_table) if isinstance(values, e.Fsst) else None
    if table is None:
        return PickCode(numbers)
    return PickCode(numbers, table.symbols, table.lengths)


def _levels_code(encoding: e.Encoding | None) -> Code | None:
    if encoding is None:
        return _NOTHING, 0, 0
    if encoding == NO_BITS:
        return _ZEROS, LEVEL_BITS, 0
    code = _runs_code(encoding) if isinstance(encoding, e.Rle) else _numbers_code(encoding)
    return code if code is not None and code[1] == LEVEL_BITS else None


def _runs_code(encoding: e.Rle) -> Code | None:
    """Return the code of runs in one buffer, None if the kernel does not have it."""
    values, lengths = _numbers_code(encoding.values), _numbers_code(encoding.run_lengths)
    if values is None or lengths is None or not values[0] == lengths[0] == _BYTES:
        return None
    return (_RUNS, values[1], lengths[1] // 8) if lengths[1] in _LENGTH_BITS else None


def _numbers_code(encoding: e.Encoding) -> Code | None:
    """Return the code of numbers, None if the kernel does not have it."""
    if isinstance(encoding, e.InlineBitpacking):
        bits = encoding.bits_per_value
        return (_INLINE, bits, 0) if bits in _WORDS and _is_plain(encoding.compression) else None
    if isinstance(encoding, e.OutOfLineBitpacking):
        inner, bits = encoding.values, encoding.bits_per_value
        if not isinstance(inner, e.Flat) or not _is_plain(inner.compression) or bits not in _WORDS:
            return None
        width = inner.bits_per_value
        return (_PACKED, bits, width) if 1 <= width < bits else None
    if not isinstance(encoding, e.Flat) or not _is_plain(encoding.compression):
        return None
    bits = encoding.bits_per_value
    if bits == 1:
        return _BITS, 1, 0
    return (_BYTES, bits, 0) if bits % 8 == 0 and 8 <= bits < 1 << 30 else None


def _is_plain(compression: e.BufferCompression | None) -> bool:
    return compression is None or compression.scheme == "none"


def _values_code(encoding: e.Encoding) -> Code | None:
    """Return the code of values, None if the kernel does not have it."""
    if isinstance(encoding, e.FixedSizeList):
        return _lists_code(encoding)
    if isinstance(encoding, e.Fsst):
        return _strings_code(encoding.values)
    return _strings_code(encoding) or _numbers_code(encoding)


def _lists_code(encoding: e.FixedSizeList) -> Code | None:
    """Lists of whole bytes are as wide as all their items."""
    inner, dimension = encoding.values, encoding.dimension
    code = _numbers_code(inner) if isinstance(inner, e.Flat) else None
    if code is None or code[0] != _BYTES or encoding.has_validity or not 0 < dimension < 1 << 20:
        return None
    return (_BYTES, code[1] * dimension, 0) if code[1] * dimension < 1 << 30 else None


def _strings_code(encoding: e.Encoding) -> Code | None:
    if not isinstance(encoding, e.Variable) or not _is_plain(encoding.compression):
        return None
    offsets = encoding.offsets
    if not isinstance(offsets, e.Flat) or not _is_plain(offsets.compression):
        return None
    bits = offsets.bits_per_value
    return (_STRINGS, bits, 0) if bits in (32, 64) else None


class PickedPage(Protocol):
    """A mini-block page from which a kernel picks rows."""

    @property
    def table(self) -> ChunkTable:
        """Return where its chunks lie."""

    @property
    def recipe(self) -> Recipe | None:
        """Return how its values are encoded; None if no kernel picks them."""

    @property
    def dictionary(self) -> Block | None:
        """Return its distinct values, if its values are numbers of these."""


@dataclass(frozen=True, slots=True, eq=False)
class PlainPage:
    """A `PickedPage`, and nothing else of it: its rows are no lists."""

    table: ChunkTable
    recipe: Recipe
    dictionary: Block | None = None

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes, its recipe not counted, which is that of many pages."""
        items = 0 if self.dictionary is None else block_bytes(self.dictionary)
        return self.table.size_bytes + items + _PAGE_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class KnownPage:
    """The remembered metadata of a mini-block page."""

    index: ChunkIndex
    table: ChunkTable
    recipe: Recipe | None

    @property
    def dictionary(self) -> Block | None:
        """Return its distinct values, if its values are numbers of these."""
        return self.index.dictionary

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes."""
        return self.index.size_bytes + _CODE_BYTES

    @property
    def row_bytes(self) -> int:
        """Return about how many bytes of the file a row has."""
        return self.table.row_bytes


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
class PickedChunks:
    """The chunks that hold some rows; see `pennon.encoding.kernels.chunk_lookup.find_pieces`."""

    pages: Sequence[PickedPage]
    rows: CutRows
    pieces: tuple[Int64Array, Int64Array, Int64Array, Int64Array]
    starts: Int64Array
    ends: Int64Array
    file_cuts: list[int]
    rise: bool
    size_bytes: int

    @classmethod
    def of(cls, pages: Sequence[PickedPage], rows: CutRows) -> PickedChunks:
        """Find the chunks of rows of some pages, one for each of ``rows.numbers``."""
        tables = [page.table for page in pages]
        found = find_pieces(tables, rows.files, rows.cuts, rows.starts, rows.ends)
        return cls(pages, rows, *found)

    def packed(self) -> ByteRequest:
        """Return the request for all chunks of the one file, one after the other."""
        if len(self.starts) == 1:
            start = int(self.starts[0])
            return ByteRange(start, int(self.ends[0]) - start)
        return Gather(self.starts, self.ends)

    def request(self) -> ByteRequest:
        """Return the request for what `pick` looks at, in the one file."""
        is_scattered = len(self.starts) > 1 and self.rise
        return SparseRead(self.starts, self.ends) if is_scattered else self.packed()

    def pick(self, answer: pa.Buffer) -> PageValues:
        """Return the rows, from the answer to `request`; the pages have recipes that are alike."""
        _, _, packed, positions = self.pieces
        if answer.size == self.size_bytes:
            return self.pick_from([as_bytes(answer)], [0], packed)
        return self.pick_from([as_bytes(answer)], [int(self.starts[0])], positions)

    def pick_mapped(self, sources: Sequence[Source]) -> PageValues | None:
        """Return rows of several mapped files.

        None if chunks do not rise in their file, or lie far apart while account is kept of what is looked at.
        """
        if not self.rise:
            return None
        found = bytes_of_each(sources, self.starts, self.ends, self.file_cuts)
        return None if found is None else self.pick_from(*found, self.pieces[3])

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
            self._room(recipes[0].value_bytes),
        )
        if rep is None and items != self.rows.count:
            message = f"{items} values where {self.rows.count} were expected"
            raise FormatError(message)
        shape = recipes[0].shape
        levels = Levels(rep, definition, shape.layers)
        block = shape.block(items, values, offsets)
        dictionaries = [page.dictionary for page in self.pages]
        if len(dictionaries) == 1 or dictionaries[0] is None:
            return PageValues(block, dictionaries[0], levels)
        known = [each for each in dictionaries if each is not None]
        ends = self._ends_of_pages(levels)
        return join_dictionaries(PageValues(block, None, levels), known, ends)

    def _room(self, value_bytes: int | None) -> Bytes | None:
        """Return room for the values, if it is known how much they take.

        Raises FormatError for more than the chunks can have: values are plain there, or no wider than a word.
        """
        if value_bytes is None:
            return None
        size = self.rows.count * value_bytes
        if size > max(self.size_bytes, self.rows.count * _WORD_BYTES):
            message = f"{self.rows.count} values of {value_bytes} bytes in {self.size_bytes} bytes"
            raise FormatError(message)
        return allocate(size, np.uint8)

    def _ends_of_pages(self, levels: Levels) -> Int64Array:
        """Return behind which value that of each page is the last."""
        before = np.concatenate([_ZERO, np.cumsum(self.rows.ends - self.rows.starts)])
        ends = before[self.rows.cuts[1:]]  # of the rows
        if levels.rep is None:
            return ends
        firsts = np.append(
            np.flatnonzero(levels.rep == max_repetition(levels.layers)), len(levels.rep)
        )
        if len(firsts) != before[-1] + 1:
            message = f"{len(firsts) - 1} lists where {before[-1]} were expected"
            raise FormatError(message)
        values = np.zeros(len(levels.rep) + 1, np.int64)
        is_value = np.zeros(len(levels.rep), np.int64)
        is_value[visible_levels(levels)] = 1
        np.cumsum(is_value, out=values[1:])
        found: Int64Array = values[firsts[ends]]
        return found


def are_alike(pages: Sequence[PickedPage]) -> bool:
    """Return whether one kernel call can pick rows of all these pages; `can_join` is true of each."""
    first = pages[0].recipe
    if not are_like([page.dictionary for page in pages]):
        return False
    if first is None:
        return False
    recipes = [page.recipe for page in pages]
    if recipes.count(first) == len(recipes):
        return True
    return all(
        each is first or (each is not None and each.shape == first.shape) for each in recipes
    )


def can_join(page: PickedPage | None) -> bool:
    """Tell whether rows of a page can be picked together with those of others that are like it."""
    if page is None or page.recipe is None:
        return False
    return can_join_dictionary(page.dictionary)
