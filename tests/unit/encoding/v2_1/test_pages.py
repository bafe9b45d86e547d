"""Whole pages from annotated bytes, and damaged pages."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pennon.core.byte_ranges import ByteRange, ByteRequest
from pennon.encoding.assemble import assemble_as
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import run
from pennon.encoding.rows import Rows
from pennon.encoding.search_cache import SearchCache, Slot
from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.constant_page import parse_value
from pennon.encoding.v2_1.layouts import BlobPage, ConstantPage, FullZip, Layer, Layout, MiniBlock
from pennon.encoding.v2_1.page import PageValues
from pennon.encoding.v2_1.pages import read_page
from pennon.errors import FormatError, LanceError, TooLargeError, UnsupportedError

ITEM = (Layer.ALL_VALID_ITEM,)
NULLABLE = (Layer.NULLABLE_ITEM,)
LISTS = (Layer.ALL_VALID_ITEM, Layer.EMPTYABLE_LIST)


class Page:
    """A page in a file of its own, with junk between the buffers; counts rounds."""

    def __init__(self, layout: Layout, rows: int, buffers: Sequence[bytes]) -> None:
        self.layout = layout
        self.data = b""
        extents = []
        for buffer in buffers:
            self.data += b"\xa5" * 5
            extents.append(ByteRange(len(self.data), len(buffer)))
            self.data += buffer
        self.buffers = PageBuffers(rows, tuple(extents))
        self.rounds = 0
        self.slot = Slot(SearchCache(), "page")

    def answer(self, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        self.rounds += 1
        return [pa.py_buffer(self._bytes(request)) for request in requests]

    def _bytes(self, request: ByteRequest) -> bytes:
        if isinstance(request, ByteRange):
            assert 0 <= request.position <= request.end <= len(self.data)
            return self.data[request.position : request.end]
        ranges = list(zip(request.starts.tolist(), request.ends.tolist(), strict=True))
        assert all(0 <= start <= end <= len(self.data) for start, end in ranges)
        return b"".join(self.data[start:end] for start, end in ranges)

    def read(self, rows: Rows) -> PageValues:
        self.rounds = 0
        return run(read_page(self.layout, self.buffers, rows, self.slot), self.answer)

    def values(self, rows: Rows, t: pa.DataType) -> list[object]:
        found: list[object] = assemble_as(self.read(rows).values, t).to_pylist()
        return found


# --- mini-block -----------------------------------------------------------------------------------


def chunk(levels: int, *buffers: bytes) -> bytes:
    """Return a chunk: header, then each buffer from a multiple of 8 on, padded with 0xFE."""
    made = struct.pack(f"<H{len(buffers)}H", levels, *map(len, buffers))
    for buffer in buffers:
        made += b"\xfe" * (-len(made) % 8) + buffer
    return made + b"\xfe" * (-len(made) % 8)


def words(chunks: Sequence[bytes], logs: Sequence[int]) -> bytes:
    pairs = zip(chunks, logs, strict=True)
    return b"".join(struct.pack("<H", (len(each) // 8 - 1) << 4 | log) for each, log in pairs)


def flat_layout(items: int) -> MiniBlock:
    return MiniBlock(None, None, e.Flat(32), None, 0, ITEM, 1, 0, items, is_large=False)


def flat_page() -> Page:
    """Ten int32: chunks of 4, 4 and 2 values."""
    numbers = np.arange(10, dtype=np.int32)
    chunks = [chunk(0, numbers[at : at + 4].tobytes()) for at in (0, 4, 8)]
    assert chunks[0].hex() == "00001000fefefefe00000000010000000200000003000000"
    return Page(flat_layout(10), 10, [words(chunks, [2, 2, 0]), b"".join(chunks)])


def test_mini_block_page_of_flat_chunks() -> None:
    page = flat_page()
    assert page.values(Rows.between(0, 10), pa.int32()) == list(range(10))
    assert page.rounds == 1, "a whole page is read at once"
    page = flat_page()
    assert page.values(Rows.between(3, 9), pa.int32()) == [3, 4, 5, 6, 7, 8]
    assert page.rounds == 1, "so is a range of rows, if it is where it likely is"
    page = flat_page()
    assert page.values(Rows.at(np.array([0, 3])), pa.int32()) == [0, 3]
    assert page.rounds == 1, "all of a small page comes along, and single rows are looked for in it"
    assert page.values(Rows.at(np.array([0, 3, 9])), pa.int32()) == [0, 3, 9]
    assert page.rounds == 1, "where the chunks lie is known by now"
    index = page.slot.get()
    assert index is not None
    assert index.size_bytes > 0


def test_row_range_outside_the_estimated_chunks_takes_two_rounds() -> None:
    """The first chunks have few values and many bytes: they reach far beyond their share of the page."""
    numbers = np.arange(16 + 4096, dtype=np.int32)
    chunks = [chunk(0, numbers[at : at + 2].tobytes()) + bytes(30_000) for at in range(0, 16, 2)]
    chunks.append(chunk(0, numbers[16:].tobytes()))
    for rows in (
        Rows.between(1, 2),
        Rows.between(5, 8),
        Rows.between(1, 300),
        Rows.between(9, 4112),
    ):
        page = Page(flat_layout(4112), 4112, [words(chunks, [1] * 8 + [0]), b"".join(chunks)])
        expected = numbers[rows.starts[0] : rows.end].tolist()
        assert page.values(rows, pa.int32()) == expected
        assert page.rounds == (1 if rows.end in {2, 4112} else 2)
        assert page.values(rows, pa.int32()) == expected
        assert page.rounds == 1


def test_levels_of_chunks() -> None:
    """[1, 2], [], [3], [4, 5, 6] in chunks of 2, 2 and 2 values; the last row begins in chunk 1."""
    rep = [[1, 0, 1], [1, 1], [0, 0]]
    definition = [[0, 0, 1], [0, 0], [0, 0]]
    values = np.arange(1, 7, dtype=np.int32)
    chunks = [
        chunk(
            len(rep[n]),
            np.array(rep[n], np.uint16).tobytes(),
            np.array(definition[n], np.uint16).tobytes(),
            values[2 * n : 2 * n + 2].tobytes(),
        )
        for n in range(3)
    ]
    index = np.array([2, 0, 1, 1, 1, 0], np.uint64).tobytes()
    layout = MiniBlock(e.Flat(16), e.Flat(16), e.Flat(32), None, 0, LISTS, 1, 1, 6, is_large=False)
    page = Page(layout, 4, [words(chunks, [1, 1, 0]), b"".join(chunks), index])
    for rows, wanted, levels in (
        (Rows.between(0, 4), [1, 2, 3, 4, 5, 6], [1, 0, 1, 1, 1, 0, 0]),
        (Rows.between(3, 4), [4, 5, 6], [1, 0, 0]),
        (Rows.between(1, 3), [3], [1, 1]),
        (Rows.at(np.array([0, 3])), [1, 2, 4, 5, 6], [1, 0, 1, 0, 0]),
    ):
        found = page.read(rows)
        assert assemble_as(found.values, pa.int32()).to_pylist() == wanted
        assert found.levels.rep is not None
        assert found.levels.rep.tolist() == levels


def test_dictionary_of_a_page() -> None:
    """Indices 1 0 1; the dictionary is one buffer: width of offsets, begin of bytes, offsets, bytes."""
    chunks = [chunk(0, bytes([1, 0, 1]))]
    items = struct.pack("<IIIII", 32, 20, 0, 1, 3) + b"abb"
    layout = replace(
        flat_layout(3),
        values=e.Flat(8),
        dictionary=e.Variable(e.Flat(32)),
        num_dictionary_items=2,
    )
    found = Page(layout, 3, [words(chunks, [0]), chunks[0], items]).read(Rows.between(0, 3))
    assert found.dictionary is not None
    assert assemble_as(found.dictionary, pa.string()).to_pylist() == ["a", "bb"]
    assert assemble_as(found.values, pa.uint8()).to_pylist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_items": 8}, "chunks of more than the 8 items"),
        ({"num_items": 11}, "chunks of 11 rows in a page of 10"),
        ({"num_items": 1 << 40}, "a last chunk of"),
        ({"values": e.Flat(64)}, "4 values of 64 bits in 16 bytes"),
        ({"values": e.Flat(33)}, "values of 33 bits"),
        ({"values": e.VariablePackedStruct(())}, "cannot be encoded as VariablePackedStruct"),
        ({"num_buffers": 2}, "the buffers of chunk"),
        ({"layers": LISTS}, "page buffer 2"),
        ({"dictionary": e.Flat(8)}, "page buffer 2"),
        ({"is_large": True}, "no words of 4 bytes"),
        ({"definition": e.Flat(16)}, "chunk"),
    ],
)
def test_mini_block_page_with_damaged_layout_is_refused(
    change: dict[str, object], message: str
) -> None:
    page = flat_page()
    page.layout = replace(page.layout, **change)  # type: ignore[arg-type]
    with pytest.raises(LanceError, match=message):
        page.read(Rows.between(0, 10))


# --- full-zip -------------------------------------------------------------------------------------


def test_full_zip_of_strings() -> None:
    """ "ab", NULL, "": control word, size (none under NULL), bytes; then where rows begin."""
    data = b"\x00\x02\x00\x00\x00ab" + b"\x01" + b"\x00\x00\x00\x00\x00"
    index = bytes([0, 7, 8, 13])
    layout = FullZip(0, 1, None, 32, 3, 3, e.Variable(e.Flat(32)), NULLABLE)
    page = Page(layout, 3, [data, index])
    found = page.read(Rows.between(0, 3))
    assert page.rounds == 1
    assert found.levels.definition is not None
    assert found.levels.definition.tolist() == [0, 1, 0]
    assert page.values(Rows.between(0, 3), pa.binary()) == [b"ab", b"", b""]
    assert page.values(Rows.at(np.array([0, 2])), pa.binary()) == [b"ab", b""]
    assert page.rounds == 2


def test_full_zip_of_fixed_width() -> None:
    """Every row has the same size, so one round finds it."""
    data = b"".join(bytes([n % 2]) + struct.pack("<i", n) for n in range(5))
    page = Page(FullZip(0, 1, 32, None, 5, 5, e.Flat(32), NULLABLE), 5, [data])
    assert page.values(Rows.at(np.array([1, 4])), pa.int32()) == [1, 4]
    assert page.rounds == 1


def test_full_zip_page_of_nulls() -> None:
    """Values of no bits: all that pylance 1.0.4 writes of fixed-size lists that are all NULL."""
    layout = FullZip(0, 1, 0, None, 3, 3, e.Constant(None), NULLABLE)
    page = Page(layout, 3, [b"\x01\x01\x01"])
    assert page.values(Rows.between(0, 3), pa.list_(pa.int16(), 2)) == [None] * 3
    assert page.values(Rows.at(np.array([0, 2])), pa.int16()) == [None, None]
    page.layout = replace(layout, bits_def=0)
    with pytest.raises(FormatError, match="full-zip values of 0 bits"):
        page.read(Rows.between(0, 3))


@pytest.mark.parametrize(
    ("data", "index", "message"),
    [
        (b"\x00\x09\x00\x00\x00ab", bytes([0, 7]), "cut off"),
        (b"\x00\x02\x00\x00\x00ab", bytes([0, 9]), "outside the 7 bytes"),
        (b"\x00\x02\x00\x00\x00ab", bytes([5, 2]), "outside the 7 bytes"),
        (b"\x01\x01", bytes([0, 2]), "2 rows where 1"),
        (b"\x01", bytes([0, 1, 2]), "a row index of 3 bytes"),
    ],
)
def test_damaged_full_zip(data: bytes, index: bytes, message: str) -> None:
    layout = FullZip(0, 1, None, 32, 1, 1, e.Variable(e.Flat(32)), NULLABLE)
    page = Page(layout, 1, [data, index])
    with pytest.raises(FormatError, match=message):
        page.read(Rows.ranges(np.array([0, 1]), np.array([1, 1])))


# --- constant -------------------------------------------------------------------------------------


def test_constant_page_of_one_value() -> None:
    page = Page(ConstantPage(b"\x07\0\0\0", None, None, 0, 0, ITEM), 1 << 40, [])
    assert page.values(Rows.between(1 << 39, (1 << 39) + 3), pa.int32()) == [7, 7, 7]
    assert page.rounds == 0
    with pytest.raises(TooLargeError, match="read fewer rows"):
        page.read(Rows.between(0, 1 << 40))


def test_one_string_with_nulls() -> None:
    value = struct.pack("<IIIII", 2, 8, 2, 0, 2) + b"hi"
    levels = np.array([0, 1, 0], np.uint16).tobytes()
    page = Page(ConstantPage(None, None, None, 0, 0, NULLABLE), 3, [value, b"", levels])
    found = page.read(Rows.between(1, 3))
    assert found.levels.definition is not None
    assert found.levels.definition.tolist() == [1, 0]
    assert found.dictionary is not None
    assert assemble_as(found.dictionary, pa.string()).to_pylist() == ["hi"]


def test_levels_in_runs() -> None:
    """A NULL row, an empty one, then NULL ones: repetition 1 * 5, as one run in one buffer."""
    rep = struct.pack("<QHB", 2, 1, 5)
    definition = struct.pack("<QHHHBBB", 6, 1, 2, 1, 1, 1, 3)
    rle = e.Rle(e.Flat(16), e.Flat(8))
    layers = (Layer.ALL_VALID_ITEM, Layer.NULL_AND_EMPTY_LIST)
    page = Page(ConstantPage(None, rle, rle, 5, 5, layers), 5, [rep, definition])
    found = page.read(Rows.between(1, 4))
    assert found.values.rows == 0
    assert found.levels.definition is not None
    assert found.levels.definition.tolist() == [2, 1, 1]


@pytest.mark.parametrize(
    "data",
    [b"", b"\x02\0\0\0", struct.pack("<II", 1, 9) + b"x", struct.pack("<I", 1 << 31)],
)
def test_invalid_constant_values_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="a value of"):
        parse_value(data)


# --- blobs ----------------------------------------------------------------------------------------


def test_blob_page_with_levels() -> None:
    """A value, an empty one, and a NULL, whose level stands in its position."""
    rows = struct.pack("<QQQQQQ", 64, 9, 0, 0, 1 << 16, 0)
    packed = e.PackedStruct((64, 64), e.Flat(128))
    inner = replace(flat_layout(3), values=packed)
    chunks = [chunk(0, rows)]
    page = Page(BlobPage(inner, NULLABLE), 3, [words(chunks, [0]), chunks[0]])
    found = page.read(Rows.between(0, 3))
    assert found.levels.definition is not None
    assert found.levels.definition.tolist() == [0, 0, 1]
    with pytest.raises(UnsupportedError, match="list of blobs"):
        Page(BlobPage(inner, LISTS), 3, [words(chunks, [0]), chunks[0]]).read(Rows.between(0, 3))
