"""Mini-block pages: from rows to chunks, and from chunks to values and levels.

One round reads the chunk index (`pennon.encoding.v2_1.chunk_index`), unless it is remembered; one
more the chunks that hold the rows.  A whole page takes one round for both, and so does a range of rows whose
chunks lie about where they would if all were of one size.

With lists, a row is a run of levels that begins at the highest repetition level, and has as many
values as levels of the run that are no NULL or empty lists.  Chunks are cut between values, not
between rows, so a row may go on in the next chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest, Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.block import Block, FixedWidthBlock
from pennon.encoding.kernels.chunks import put_together
from pennon.encoding.kernels.miniblocks import split_chunks
from pennon.encoding.kernels.row_positions import place_rows
from pennon.encoding.kernels.shred import index_rows
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.search_cache import Slot
from pennon.encoding.v2_1.chunk_index import ChunkIndex, parse_chunk_index
from pennon.encoding.v2_1.chunks import ChunkBuffers, Chunks
from pennon.encoding.v2_1.dictionary import is_of_numbers
from pennon.encoding.v2_1.dictionary_items import EncodedItems
from pennon.encoding.v2_1.dispatch import Codecs
from pennon.encoding.v2_1.encodings import Encoding
from pennon.encoding.v2_1.layouts import MiniBlock, max_repetition, max_visible
from pennon.encoding.v2_1.page import (
    EncodedPage,
    LevelArray,
    Levels,
    PageValues,
    decode_levels,
    encode_levels,
    levels_per_chunk,
)
from pennon.encoding.v2_1.page_rules import PageRules
from pennon.encoding.v2_1.pick import pick_levels
from pennon.encoding.v2_1.point_read import CutRows, KnownPage, PickedChunks, Recipes
from pennon.encoding.v2_1.strategy import POINT_READ, ahead_of_index, for_chunks
from pennon.encoding.v2_1.values import Chunked
from pennon.errors import FormatError

ToKnow: TypeAlias = tuple[MiniBlock, PageBuffers, Slot]
"""A page that is to be known, and where it is remembered."""

_DATA = 1
_DICTIONARY = 2


def read_mini_block(
    layout: MiniBlock, page: PageBuffers, rows: Rows, codecs: Codecs, slot: Slot
) -> Steps[PageValues]:
    """Return the steps that read ``rows`` of a page."""
    known: KnownPage | None = slot.get()
    ahead: _Ahead | None = None
    if known is None:
        known, ahead = yield from _read_known(layout, page, codecs, rows)
        slot.put(known)
    found = PickedChunks.of([known], CutRows.of_page(rows))
    chunks = found.pieces[1]
    is_point = (
        for_chunks(rows, known.index.first_rows, chunks, known.recipe, known.row_bytes)
        is POINT_READ
    )
    if ahead is not None and ahead.is_whole and not (is_point and rows.count < page.rows):
        positions = known.index.offsets[chunks]
        touched = _Touched(layout, known.index, chunks, as_bytes(ahead.data), positions)
        return _decode(touched, rows, codecs)
    answer = None if ahead is None else ahead.part(found)
    ahead = None  # not held while the rest is read
    if answer is None:
        (answer,) = yield [found.request() if is_point else found.packed()]
    if is_point:
        return found.pick(answer)
    touched = _Touched(layout, known.index, chunks, as_bytes(answer), found.pieces[2])
    return _decode(touched, rows, codecs)


def read_known(pages: Sequence[ToKnow], codecs: Codecs) -> Steps[list[KnownPage]]:
    """Return the steps that get to know pages; a round for all that are not remembered."""
    found: list[KnownPage | None] = [slot.get() for _, _, slot in pages]
    missing = [at for at, known in enumerate(found) if known is None]
    if missing:
        wanted = [_index_requests(*pages[at][:2]) for at in missing]
        answers = iter((yield [request for requests in wanted for request in requests]))
        recipes = Recipes()
        parts = [[as_bytes(next(answers)) for _ in requests] for requests in wanted]
        of_pages = [(pages[at][0], each) for at, each in zip(missing, parts, strict=True)]
        dictionaries = _dictionaries(of_pages, codecs)
        for at, mine, dictionary in zip(missing, parts, dictionaries, strict=True):
            layout, page, slot = pages[at]
            known = found[at] = _known(layout, page, mine, dictionary, recipes)
            slot.put(known)
    return cast("list[KnownPage]", found)


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Ahead:
    """Bytes of the chunks that were read along with their index, from a position of the file on."""

    data: pa.Buffer
    position: int
    is_whole: bool

    def part(self, found: PickedChunks) -> pa.Buffer | None:
        """Return the bytes from the first chunk that was found to the last one; None if they are not all here.

        None as well if there is more in between, unless this is the whole page.
        """
        if len(found.starts) != 1 and not (self.is_whole and found.rise):
            return None
        start, end = int(found.starts[0]) - self.position, int(found.ends[-1]) - self.position
        return self.data.slice(start, end - start) if 0 <= start <= end <= self.data.size else None


def _read_known(
    layout: MiniBlock, page: PageBuffers, codecs: Codecs, rows: Rows
) -> Steps[tuple[KnownPage, _Ahead | None]]:
    """Return the steps that read the index, and along with it the chunks where ``rows`` likely are."""
    requests = _index_requests(layout, page)
    data = data_of(page)
    guess = ahead_of_index(rows, page.rows, data)
    answers = yield requests if guess is None else [*requests, guess]
    ahead = None
    if guess is not None:
        ahead = _Ahead(answers.pop(), guess.position, guess == data)
    parts = [as_bytes(answer) for answer in answers]
    (dictionary,) = _dictionaries([(layout, parts)], codecs)
    return _known(layout, page, parts, dictionary, Recipes()), ahead


def _index_requests(layout: MiniBlock, page: PageBuffers) -> list[ByteRequest]:
    """Return what to read of a page to know it: chunk words, dictionary, row index."""
    requests: list[ByteRequest] = [page.find("page", 0)]
    if layout.dictionary is not None:
        requests.append(page.find("page", _DICTIONARY))
    if max_repetition(layout.layers):
        requests.append(page.find("page", _DICTIONARY + (layout.dictionary is not None)))
    return requests


def _dictionaries(
    pages: Sequence[tuple[MiniBlock, list[Bytes]]], codecs: Codecs
) -> list[Block | None]:
    """Return the dictionaries of pages, of the answers to `_index_requests`; None for pages without one.

    Numbers that are encoded alike are decoded in one call.
    """
    found: list[Block | None] = []
    for encoding, group in groupby(pages, key=lambda page: page[0].dictionary):
        members = list(group)
        if encoding is None:
            found += [None] * len(members)
        elif len(members) > 1 and is_of_numbers(encoding):
            counts = [_dictionary_items(layout) for layout, _ in members]
            found += _decode_numbers(encoding, counts, [parts[1] for _, parts in members], codecs)
        else:
            found += [decode_items(layout, parts[1], codecs) for layout, parts in members]
    return found


def _decode_numbers(
    encoding: Encoding, counts: list[int], data: list[Bytes], codecs: Codecs
) -> list[Block]:
    """Return the items of several dictionaries, parts of one buffer."""
    sizes = np.array([len(each) for each in data], np.int64)
    together = ChunkBuffers(np.concatenate(data), np.cumsum(sizes) - sizes, sizes)
    chunks = Chunks((together,), np.array(counts, np.int64))
    whole = codecs.decode_blocks(encoding, chunks, Rows.between(0, chunks.values))
    if not isinstance(whole, FixedWidthBlock) or whole.bits_per_value % 8:
        message = f"a dictionary of {type(whole).__name__}"
        raise FormatError(message)
    width, firsts = whole.bits_per_value // 8, chunks.first_values.tolist()
    return [
        FixedWidthBlock(count, whole.bits_per_value, whole.data.slice(first * width, count * width))
        for first, count in zip(firsts[:-1], counts, strict=True)
    ]


def _known(
    layout: MiniBlock,
    page: PageBuffers,
    parts: list[Bytes],
    dictionary: Block | None,
    recipes: Recipes,
) -> KnownPage:
    """Return what is known of a page, of the answers to `_index_requests` and its dictionary."""
    data = data_of(page)
    row_index = parts[-1] if max_repetition(layout.layers) else None
    index = parse_chunk_index(layout, page.rows, parts[0], data.size_bytes, row_index, dictionary)
    return KnownPage(index, index.table(data.position), recipes.of(layout))


def data_of(page: PageBuffers) -> ByteRange:
    """Return the buffer that holds the chunks."""
    return page.find("page", _DATA)


def decode_items(layout: MiniBlock, data: Bytes, codecs: Codecs) -> Block:
    """Return the items of a page's dictionary, in memory of its own: it outlives what was read along with it."""
    count = _dictionary_items(layout)
    if layout.dictionary is None:
        message = "a page without a dictionary"
        raise FormatError(message)
    whole = Chunks.whole(data.copy(), count)
    return codecs.decode_blocks(layout.dictionary, whole, Rows.between(0, count))


def _dictionary_items(layout: MiniBlock) -> int:
    """Return how many items the dictionary of a page has.  Raises FormatError if it cannot have as many."""
    if layout.num_dictionary_items >= 1 << 32:
        message = f"a dictionary of {layout.num_dictionary_items} items"
        raise FormatError(message)
    return layout.num_dictionary_items


# --- decoding -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Touched:
    """The chunks that were read: ``data[positions[i]:]`` is chunk ``chunks[i]`` of the index."""

    layout: MiniBlock
    index: ChunkIndex
    chunks: Int64Array
    data: Bytes
    positions: Int64Array

    @property
    def counts(self) -> Int64Array:
        return self.index.counts[self.chunks]


def decode_all(
    layout: MiniBlock, index: ChunkIndex, data: Bytes, positions: Int64Array, codecs: Codecs
) -> PageValues:
    """Return all values of the chunks of an index, which lie at these positions of ``data``."""
    chunks = np.arange(len(index.counts))
    rows = Rows.between(0, int(index.first_rows[-1]))
    return _decode(_Touched(layout, index, chunks, data, positions), rows, codecs)


def _decode(touched: _Touched, rows: Rows, codecs: Codecs) -> PageValues:
    layout = touched.layout
    levels, buffers = _split(touched)
    encodings = [each for each in (layout.rep, layout.definition) if each is not None]
    decoded = [
        decode_levels(encoding, Chunks((buffer,), levels), codecs)
        for encoding, buffer in zip(encodings, buffers, strict=False)
    ]
    rep = decoded.pop(0) if layout.rep is not None else None
    definition = decoded.pop(0) if layout.definition is not None else None
    places, items = _places(touched, rows, _Stored(levels, rep, definition))
    chunks = Chunks(buffers[len(encodings) :], touched.counts)
    values = codecs.decode_chunks(layout.values, chunks, items)
    picked = Levels(
        pick_levels(rep, places.starts, places.ends),
        pick_levels(definition, places.starts, places.ends),
        layout.layers,
    )
    return PageValues(values, touched.index.dictionary, picked)


def _split(touched: _Touched) -> tuple[Int64Array, tuple[ChunkBuffers, ...]]:
    """Return the number of levels of each chunk, and its buffers, levels first."""
    layout, index = touched.layout, touched.index
    sizes = index.offsets[touched.chunks + 1] - index.offsets[touched.chunks]
    level_buffers = (layout.rep is not None) + (layout.definition is not None)
    levels, starts, lengths = split_chunks(
        touched.data, touched.positions, sizes, level_buffers, layout.num_buffers, layout.is_large
    )
    pairs = zip(starts, lengths, strict=True)
    return levels, tuple(ChunkBuffers(touched.data, *pair) for pair in pairs)


@dataclass(frozen=True, slots=True, eq=False)
class _Stored:
    """The levels of all chunks that were read, and how many each of them has."""

    counts: Int64Array
    rep: LevelArray | None
    definition: LevelArray | None


def _places(touched: _Touched, rows: Rows, stored: _Stored) -> tuple[Rows, Rows]:
    """Return which of the levels belong to ``rows``, and which of the values."""
    values = _all_values(touched, rows)
    if stored.rep is None:
        if max_repetition(touched.layout.layers):
            message = "a page of lists without repetition levels"
            raise FormatError(message)
        if stored.definition is not None and (stored.counts != touched.counts).any():
            message = "chunks that have not one level for each value"
            raise FormatError(message)
        items = _flat_items(touched, rows) if values is None else values
        return items, items
    if values is not None:
        # Whether levels, rows and values go together shows when they are nested.
        return Rows.between(0, len(stored.rep)), values
    return _row_places(touched, rows, stored.rep, stored)


def _all_values(touched: _Touched, rows: Rows) -> Rows | None:
    """Return all values if ``rows`` are the whole page, else None."""
    index = touched.index
    if not rows.is_contiguous or rows.count != index.first_rows[-1]:
        return None
    if len(touched.chunks) != len(index.counts):
        return None
    return Rows.between(0, int(index.first_values[-1]))


def _flat_items(touched: _Touched, rows: Rows) -> Rows:
    """Return which of the values that were read are those of ``rows``; a row is a value."""
    first = touched.index.first_values[touched.chunks]
    counts = touched.counts
    shift = counts.cumsum() - counts - first
    wanted = rows.starts < rows.ends
    starts, ends = rows.starts[wanted], rows.ends[wanted]
    low = first.searchsorted(starts, side="right") - 1
    high = first.searchsorted(ends - 1, side="right") - 1
    return Rows.ranges(starts + shift[low], ends + shift[high])


def _row_places(
    touched: _Touched, rows: Rows, rep: LevelArray, stored: _Stored
) -> tuple[Rows, Rows]:
    """Return which of the levels that were read belong to ``rows``, and which of the values."""
    index, chunks, layers = touched.index, touched.chunks, touched.layout.layers
    follows = np.ones(len(chunks), np.uint8)
    follows[:1] = 0
    follows[1:] = chunks[1:] == chunks[:-1] + 1
    wanted = rows.starts < rows.ends
    first, last, low, high = place_rows(
        rep,
        stored.definition,
        max_repetition(layers),
        max_visible(layers),
        stored.counts,
        touched.counts,
        index.first_rows[chunks],
        index.first_rows[chunks + 1],
        follows,
        rows.starts[wanted],
        rows.ends[wanted],
    )
    return Rows.ranges(first, last), Rows.ranges(low, high)


def encode_mini_block(
    levels: Levels, chunked: Chunked, rules: PageRules, items: EncodedItems | None = None
) -> EncodedPage | None:
    """Return a page of chunks; None if levels make a chunk too large.

    ``items`` are those of the page's dictionary, if the values are indices.
    """
    counts = levels_per_chunk(levels, chunked.counts)
    parts = [
        None if part is None else encode_levels(part, counts, rules)
        for part in (levels.rep, levels.definition)
    ]
    used = [part for part in parts if part is not None]
    together = put_together(
        counts,
        _log_counts(chunked.counts),
        [*(part.data for part in used), *chunked.buffers],
        np.array([*(part.sizes for part in used), *chunked.sizes]),
        len(used),
        rules.wide_chunks,
    )
    if together is None:
        return None
    data, words = together
    buffers: list[np.ndarray] = [words, data]
    if items is not None:
        buffers.append(items.data)
    if levels.rep is not None:
        buffers.append(index_rows(levels.rep, counts, max_repetition(levels.layers)))
    layout = MiniBlock(
        None if parts[0] is None else parts[0].encoding,
        None if parts[1] is None else parts[1].encoding,
        chunked.encoding,
        None if items is None else items.encoding,
        0 if items is None else items.count,
        levels.layers,
        len(chunked.buffers),
        0 if levels.rep is None else 1,
        int(chunked.counts.sum()),
        rules.wide_chunks,
    )
    return EncodedPage(layout, tuple(pa.py_buffer(buffer) for buffer in buffers))


def _log_counts(counts: Int64Array) -> Bytes:
    """Return the binary logarithms of all chunks' numbers of values, and 0 for the last one."""
    logs = np.log2(counts).astype(np.uint8)
    logs[-1] = 0
    return logs
