"""Rows picked out of chunks are those that whole chunks give; damage is an error or other rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.core.byte_ranges import ByteRange, ByteRequest, SparseRead
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.kernels.chunk_lookup import ChunkTable, cut_rows, find_pieces
from pennon.encoding.kernels.point_read import PickCode, pick_pieces
from pennon.encoding.rows import FileRows, Rows
from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.choose import encode_page
from pennon.encoding.v2_1.chunk_index import ChunkIndex, parse_chunk_index
from pennon.encoding.v2_1.codecs import CODECS
from pennon.encoding.v2_1.encoding_hints import EncodingHints
from pennon.encoding.v2_1.layouts import Layer, MiniBlock, max_repetition
from pennon.encoding.v2_1.mini_block import _decode, _Touched
from pennon.encoding.v2_1.page import PageValues
from pennon.encoding.v2_1.page_rules import RULES_OF_2_1, PageRules
from pennon.encoding.v2_1.point_read import (
    CutRows,
    KnownPage,
    PickedChunks,
    Recipe,
    are_alike,
    recipe_of,
)
from pennon.errors import FormatError
from pennon.file.v2_1.tree import Tree
from pennon.file.v2_1.writer import spines
from pennon.schema.arrow import schema_from_arrow

ROWS = 9_000
RANDOM = np.random.default_rng(5)


def numbers(count: int, high: int = 1 << 40, dtype: str = "i8") -> pa.Array:
    return pa.array(RANDOM.integers(0, high, count, np.dtype(dtype)))


def lists(items: pa.Array, rows: int, most: int = 6) -> pa.Array:
    cuts = np.sort(RANDOM.integers(0, len(items) + 1, rows - 1))
    cuts[: rows // most] = 0
    offsets = np.concatenate([[0], np.sort(cuts), [len(items)]]).astype(np.int32)
    mask = pa.array(RANDOM.random(rows) < 0.1)
    return pa.ListArray.from_arrays(pa.array(offsets), items, mask=mask)


def some(array: pa.Array, share: float = 0.3) -> pa.Array:
    mask = pa.array(RANDOM.random(len(array)) < share)
    return pa.compute.if_else(mask, pa.scalar(None, array.type), array)


def words(count: int) -> pa.Array:
    return pa.array([f"word {n % 977} and {n}" * (n % 5) for n in range(count)])


ARRAYS = {
    "int64": numbers(ROWS),
    "int32": numbers(ROWS, 1000, "i4"),
    "int16": numbers(ROWS, 9000, "i2"),
    "uint8": numbers(ROWS, 60, "u1"),
    "wide int64": numbers(ROWS, (1 << 63) - 1),
    "decimal": numbers(ROWS).cast(pa.decimal128(30)),
    "bool": pa.array(RANDOM.random(ROWS) < 0.5),
    "vector": pa.FixedSizeListArray.from_arrays(pa.array(RANDOM.random(ROWS * 3)), 3),
    "int64 and NULL": some(numbers(ROWS)),
    "bool and NULL": some(pa.array(RANDOM.random(ROWS) < 0.5)),
    "string": words(ROWS),
    "short strings": pa.array([str(n) for n in RANDOM.integers(0, 1 << 40, 700)]),
    "string and NULL": some(words(ROWS)),
    "list": lists(numbers(ROWS * 3), ROWS),
    "list of NULLs": lists(some(numbers(ROWS * 3, 99)), ROWS),
    "list of bools": lists(pa.array(RANDOM.random(ROWS * 3) < 0.5), ROWS),
    "list of strings": lists(words(ROWS * 2), ROWS),
    "list of lists": lists(lists(numbers(ROWS * 4, 5000), ROWS * 2), ROWS),
    "a long list": lists(numbers(ROWS * 3, 100), 7),
}


@dataclass(frozen=True)
class Page:
    """A page that we wrote, its index parsed."""

    layout: MiniBlock
    index: ChunkIndex
    data: Bytes
    rows: int
    recipe: Recipe

    @classmethod
    def of(cls, array: pa.Array, rules: PageRules = RULES_OF_2_1) -> Page:
        tree = Tree.of(schema_from_arrow(pa.schema([pa.field("c", array.type)])).fields[0])
        (spine,) = spines(array, tree, "c")
        (path,) = tree.paths()
        made = encode_page(spine, len(path) - 1, EncodingHints.parse({}), rules)
        assert made is not None
        layout = made.layout
        assert isinstance(layout, MiniBlock)
        assert layout.dictionary is None
        words, data = (as_bytes(buffer) for buffer in made.buffers[:2])
        row_index = as_bytes(made.buffers[-1]) if max_repetition(layout.layers) else None
        index = parse_chunk_index(layout, len(array), words, len(data), row_index)
        recipe = recipe_of(layout)
        assert recipe is not None
        return cls(layout, index, data, len(array), recipe)

    def found(self, rows: Rows) -> PickedChunks:
        known = KnownPage(self.index, self.index.table(0), self.recipe)
        return PickedChunks.of([known], CutRows.of_page(rows))

    def pick(self, rows: Rows, data: Bytes) -> PageValues:
        return run_on(self.found(rows), data, peek=True)

    def unpack(self, rows: Rows, data: Bytes) -> PageValues:
        """Return the rows the slow way: all chunks that they touch are decoded whole."""
        chunks = self.found(rows).pieces[1]
        touched = _Touched(self.layout, self.index, chunks, data, self.index.offsets[chunks])
        return _decode(touched, rows, CODECS)


def some_rows(random: np.random.Generator, total: int) -> Rows:
    kind = random.integers(0, 4)
    if kind == 0:
        start = int(random.integers(0, total))
        return Rows.between(start, start + 1)
    if kind == 1:
        low, high = sorted(random.integers(0, total + 1, 2).tolist())
        return Rows.between(low, high)
    if kind == 2:
        return Rows.at(np.unique(random.integers(0, total, random.integers(1, 200))))
    borders = np.unique(random.integers(0, total + 1, 40))
    return Rows.ranges(borders[:-1:2].copy(), borders[1::2].copy())


def same(left: PageValues, right: PageValues) -> None:
    for one, other in (
        (left.levels.rep, right.levels.rep),
        (left.levels.definition, right.levels.definition),
    ):
        assert (one is None) == (other is None)
        assert one is None or other is None or np.array_equal(one, other)
    assert plain(left.values) == plain(right.values)


def plain(block: Any) -> object:
    """Return a block's values in a form that compares."""
    rows = block.rows
    if hasattr(block, "offsets"):
        offsets = np.frombuffer(block.offsets, f"i{block.offset_bits // 8}", rows + 1)
        data = block.data.to_pybytes()
        return [data[low:high] for low, high in pairwise(offsets)]
    if hasattr(block, "dimension"):
        return block.dimension, plain(block.items)
    bits = rows * block.bits_per_value
    data = np.frombuffer(block.data, np.uint8)[: (bits + 7) // 8]
    return np.unpackbits(data, count=bits, bitorder="little").tolist()


@pytest.mark.parametrize("name", ARRAYS)
def test_point_read_rows_equal_those_of_whole_chunks(name: str) -> None:
    page = Page.of(ARRAYS[name])
    random = np.random.default_rng(11)
    for _ in range(40):
        rows = some_rows(random, page.rows)
        same(page.pick(rows, page.data), page.unpack(rows, page.data))


@pytest.mark.parametrize("name", ARRAYS)
def test_damaged_chunks_raise_format_error_or_read(name: str) -> None:
    try_damage(Page.of(ARRAYS[name]))


def try_damage(page: Page) -> None:
    random = np.random.default_rng(13)
    top = max_repetition(page.layout.layers)
    errors = 0
    for number in range(150):
        data = page.data.copy()
        rows = some_rows(random, page.rows)
        chunk = int(page.found(rows).pieces[1][:1].sum())
        begin = int(page.index.offsets[chunk])
        at = begin + random.integers(0, 40 if number % 2 else len(data) - begin, 3)
        data[np.minimum(at, len(data) - 1)] = random.integers(0, 256, 3)
        try:
            found = page.pick(rows, data)
        except FormatError:
            errors += 1
            continue
        if top and rows.count:
            assert found.levels.rep is not None
            assert int((found.levels.rep == top).sum()) == rows.count
        elif not top:
            assert found.values.rows == rows.count
    assert errors


def test_rows_of_several_pages() -> None:
    """Picked together, packed or where they lie in the file, they are those of each page."""
    for name in ("int64 and NULL", "bool", "vector", "string", "list of strings"):
        whole = ARRAYS[name]
        pages = [Page.of(whole.slice(start, 2_000)) for start in (0, 2_000, 4_000)]
        random = np.random.default_rng(17)
        file, known, at = [], [], 64
        for page in pages:
            recipe = recipe_of(page.layout)
            known.append(KnownPage(page.index, page.index.table(at), recipe))
            file.append((at, page.data))
            at += len(page.data) + 64
        everything = np.zeros(at, np.uint8)
        for start, data in file:
            everything[start : start + len(data)] = data
        borders = np.arange(4, dtype=np.int64) * 2_000
        for _ in range(20):
            rows = some_rows(random, 6_000)
            cut = CutRows.of_pages(rows, borders)
            touched = [known[number] for number in cut.numbers]
            if not touched:
                continue
            assert are_alike(touched)
            answers = [
                run_on(PickedChunks.of(touched, cut), everything, peek=peek)
                for peek in (False, True)
            ]
            same(*answers)
            parts = [
                pages[number].unpack(part, pages[number].data)
                for number, part in rows.split(borders)
            ]
            together = [value for part in parts for value in listed(part.values)]
            assert listed(answers[0].values) == together
            assert sum(levels_of(part) for part in parts) == levels_of(answers[0])


def listed(block: Any) -> list[object]:
    """Return a block's values, bits for bits."""
    found = plain(block)
    if isinstance(found, tuple):
        return listed(block.items)
    assert isinstance(found, list)
    return found


def levels_of(page: PageValues) -> int:
    return sum(
        len(levels) + int(levels.sum())
        for levels in (page.levels.rep, page.levels.definition)
        if levels is not None
    )


def run_on(found: PickedChunks, data: Bytes, *, peek: bool) -> PageValues:
    """Answer the one request of a pick; ``peek``: with all from the first range to the last."""
    request: ByteRequest = found.request()
    if peek and isinstance(request, SparseRead):
        request = request.hull
    if isinstance(request, ByteRange):
        return found.pick(pa.py_buffer(data[request.position : request.end].copy()))
    pairs = zip(request.starts, request.ends, strict=True)
    packed = np.concatenate([data[:0], *(data[low:high] for low, high in pairs)])
    return found.pick(pa.py_buffer(packed))


def test_chunk_table_finds_chunks_of_row_ranges() -> None:
    """Row 2 goes on from chunk 0 through chunk 1, in which none begins, into chunk 2."""
    first_rows = np.array([0, 3, 3, 5, 6])
    goes_on = np.array([0, 1, 1, 0], np.uint8)
    offsets = np.array([0, 10, 30, 60, 100])
    table, zero = ChunkTable(1000, offsets, offsets, first_rows, goes_on), np.zeros(1, np.int64)

    def find(*ranges: tuple[int, int]) -> list[list[int]]:
        starts, ends = np.array(ranges, np.int64).reshape(-1, 2).T.copy()
        cuts = np.array([0, len(ranges)])
        (_, chunks, packed, places), low, high, runs, rise, size = find_pieces(
            [table], zero, cuts, starts, ends
        )
        assert rise
        assert runs == [0, len(low)]
        assert size == (high - low).sum()
        assert places.tolist() == (offsets[chunks] + 1000).tolist()
        return [part.tolist() for part in (chunks, packed, low - 1000, high - 1000)]

    assert find((0, 1)) == [[0], [0], [0], [10]]
    assert find((2, 3)) == [[0, 1, 2], [0, 10, 30], [0], [60]]
    assert find((3, 5)) == [[2], [0], [30], [60]]
    assert find((0, 1), (1, 1), (5, 6)) == [[0, 3], [0, 10], [0, 60], [10, 100]]
    assert find((0, 1), (1, 6)) == [[0, 1, 2, 3], [0, 10, 30, 60], [0], [100]]
    assert find() == [[], [], [], []]
    for wrong in ((0, 7), (-1, 1), (3, 2)):
        with pytest.raises(ValueError, match="rows outside"):
            find(wrong)
    with pytest.raises(ValueError, match="differ in length"):
        ChunkTable(0, offsets, offsets, first_rows[1:], goes_on)


def test_find_pieces_of_pages_in_any_file_order() -> None:
    tables = [
        ChunkTable(at, np.array([0, 8]), np.array([0, 2]), np.array([0, 2]), np.zeros(1, np.uint8))
        for at in (100, 0, 8)
    ]
    cuts, starts = np.array([0, 1, 2, 3]), np.zeros(3, np.int64)
    (pages, chunks, packed, places), low, high, runs, rise, size = find_pieces(
        tables, starts, cuts, starts, starts + 1
    )
    assert runs == [0, 2]
    assert (pages.tolist(), chunks.tolist()) == ([0, 1, 2], [0, 0, 0])
    assert (packed.tolist(), places.tolist()) == ([0, 8, 16], [100, 0, 8])
    assert (low.tolist(), high.tolist(), rise, size) == ([100, 0], [108, 16], False, 24)
    files = np.array([0, 2, 2])
    _, low, high, runs, rise, _ = find_pieces(tables, files, cuts, starts, starts + 1)
    assert (low.tolist(), high.tolist(), runs, rise) == ([100, 0], [108, 16], [0, 1, 1, 2], True)
    with pytest.raises(ValueError, match="files fall"):
        find_pieces(tables, files[::-1].copy(), cuts, starts, starts + 1)


def test_many_chunks_of_one_row() -> None:
    count = 200
    first_rows = np.concatenate([[0], np.ones(count, np.int64)])
    offsets = np.arange(count + 1) * 8
    table = ChunkTable(0, offsets, offsets, first_rows, np.ones(count, np.uint8))
    one = np.array([0]), np.array([1])
    (_, chunks, positions, _), starts, ends, *_ = find_pieces(
        [table], np.zeros(1, np.int64), np.array([0, 1]), *one
    )
    assert chunks.tolist() == list(range(count))
    assert positions.tolist() == offsets[:-1].tolist()
    assert (starts.tolist(), ends.tolist()) == ([0], [8 * count])


def test_rows_are_cut_at_borders() -> None:
    random = np.random.default_rng(3)
    for _ in range(200):
        borders = np.concatenate([[0], np.cumsum(random.integers(0, 9, random.integers(1, 12)))])
        if not borders[-1]:
            continue
        rows = some_rows(random, int(borders[-1]))
        cut = CutRows.of_pages(rows, borders)
        cuts = cut.cuts.tolist()
        found = [
            (int(number), cut.starts[low:high].tolist(), cut.ends[low:high].tolist())
            for number, low, high in zip(cut.numbers, cuts[:-1], cuts[1:], strict=True)
        ]
        expected = []
        for number, low, high in zip(range(len(borders)), borders[:-1], borders[1:], strict=False):
            part = rows.clip(int(low), int(high))
            held = part.starts < part.ends
            if part.count:
                expected.append((number, part.starts[held].tolist(), part.ends[held].tolist()))
        assert found == expected
    one, two = np.array([0, 4]), np.array([5])
    for starts, ends in ((np.array([3]), two), (two, np.array([4])), (np.array([-1]), two)):
        with pytest.raises(ValueError, match="rows"):
            cut_rows([one], np.array([0, 1]), starts, ends)
    with pytest.raises(ValueError, match="not all ranges"):
        cut_rows([one], np.array([0, 2]), np.array([3]), np.array([4]))


def test_rows_of_several_files_are_cut() -> None:
    borders = [np.array([0, 4, 9]), np.array([0, 5]), np.array([0, 3])]
    rows = FileRows.at([np.array([1, 4, 8]), np.array([0]), np.array([2])])
    cut = CutRows.of_files(rows, borders)
    assert (cut.files.tolist(), cut.numbers.tolist()) == ([0, 0, 1, 2], [0, 1, 0, 0])
    assert (cut.cuts.tolist(), cut.count) == ([0, 1, 3, 4, 5], 5)
    assert (cut.starts.tolist(), cut.ends.tolist()) == ([1, 0, 4, 0, 2], [2, 1, 5, 1, 3])
    assert [part.starts.tolist() for part in rows.each()] == [[1, 4, 8], [0], [2]]


FLAT = (0, 0, 0, 0, 0, 0, 1, 32, 0, 0, 0, 0)


def test_point_read_refuses_arrays_that_do_not_fit() -> None:
    data = np.zeros(24, np.uint8)
    zero, one = np.zeros(1, np.int64), np.ones(1, np.int64)
    offsets, firsts, cuts = np.array([0, 24]), np.array([0, 4]), np.array([0, 1])

    def pick(
        code: tuple[int, ...] = FLAT,
        data: Bytes = data,
        chunks: np.ndarray = zero,
        pages: int = 1,
        starts: np.ndarray = zero,
        lent: Bytes | None = None,
    ) -> object:
        table = ChunkTable(0, offsets, firsts, firsts, np.zeros(1, np.uint8))
        return pick_pieces(
            [table] * pages,
            [PickCode(code)],
            zero,
            cuts,
            starts,
            one,
            zero,
            chunks,
            zero,
            [data],
            [0],
            lent,
        )

    for size in (0, 3, 5):
        with pytest.raises(ValueError, match="room that the values take"):
            pick(lent=np.zeros(size, np.uint8))
    for several in ((*FLAT[:6], 5, *FLAT[7:]), (*FLAT[:6], 2, 1, *FLAT[8:])):
        with pytest.raises(ValueError, match="nobody knows"):
            pick(several, lent=np.zeros(4, np.uint8))
    with pytest.raises(FormatError, match="not as many"):
        pick()  # the chunk says that its buffer has no bytes
    with pytest.raises(FormatError, match="leaves its buffer"):
        pick(data=data[:20])
    with pytest.raises(ValueError, match="differ in number"):
        pick(pages=2)
    with pytest.raises(ValueError, match="sorted and distinct"):
        pick(chunks=one)
    with pytest.raises(ValueError, match="sorted and disjoint"):
        pick(starts=one + 1)
    for wrong in ((4, 32, 32), (4, 32, 0), (3, 24, 0), (1, 4, 0), (5, 16, 0), (6, 8, 0), (0, 0, 0)):
        with pytest.raises(ValueError, match="no "):
            PickCode((*FLAT[:6], *wrong, *FLAT[9:]))
    with pytest.raises(ValueError, match="lists have"):
        PickCode((*FLAT[:10], 1, 0))
    with pytest.raises(ValueError, match="levels are"):
        PickCode((0, 0, 0, 1, 32, 0, *FLAT[6:]))
    with pytest.raises(ValueError, match="of strings"):
        PickCode(FLAT, np.zeros(256, np.uint64), np.zeros(256, np.uint8))
    with pytest.raises(FormatError, match="more than 8"):
        PickCode(
            (*FLAT[:6], 5, 32, 0, 0, 0, 0), np.zeros(256, np.uint64), np.full(256, 9, np.uint8)
        )


def test_encodings_without_a_recipe() -> None:
    flat = e.Flat(32)
    for values in (
        e.Rle(flat, flat),
        e.General(e.BufferCompression("zstd"), flat),
        e.FixedSizeList(3, has_validity=True, values=flat),
        e.Flat(12),
        e.Flat(32, e.BufferCompression("lz4")),
        e.OutOfLineBitpacking(32, e.Flat(32)),
        e.Variable(e.Flat(16)),
    ):
        layout = MiniBlock(None, None, values, None, 0, (Layer.ALL_VALID_ITEM,), 1, 0, 9, False)  # noqa: FBT003
        assert recipe_of(layout) is None
