"""The container: footers, tables, encodings in all three places, columns of all kinds, damage."""

from __future__ import annotations

import random
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.rows import Rows
from pennon.encoding.v2_0 import encodings as e
from pennon.encoding.v2_0.encodings import BufferRef
from pennon.errors import ArgumentError, FormatError, LanceError, UnsupportedError
from pennon.file.container.file import DataFile
from pennon.file.v2_0.reader import align
from tests.unit.file.handmade import HandColumn, HandFile, HandPage, open_bytes, open_counted

B0, B1 = BufferRef(0), BufferRef(1)
NUMBERS = pa.schema([("x", pa.int32())])


def ints(*values: int) -> bytes:
    return np.array(values, "<i4").tobytes()


def longs(*values: int) -> bytes:
    return np.array(values, "<u8").tobytes()


def flat_page(*values: int) -> HandPage:
    return HandPage(len(values), e.NoNulls(e.Flat(32, B0)), [ints(*values)])


def read(file: DataFile, rows: Rows | None = None) -> list[list[object]]:
    rows = rows or Rows.between(0, file.num_rows)
    columns = file.read_rows(file.schema.fields, file.column_of, rows)
    for chunks in columns:
        for chunk in chunks:
            chunk.validate(full=True)
    return [[value for chunk in chunks for value in chunk.to_pylist()] for chunks in columns]


@pytest.mark.parametrize("version", [(2, 0), (0, 3)])
@pytest.mark.parametrize("indirect", [False, True])
@pytest.mark.parametrize("padding", [0, 1, 64])
def test_pages_and_padding(version: tuple[int, int], indirect: bool, padding: int) -> None:
    pages = [flat_page(1, 2, 3), flat_page(4), flat_page(5, 6)]
    made = HandFile(
        NUMBERS, 6, [HandColumn(pages)], version=version, indirect=indirect, padding=padding
    )
    file = made.open()
    assert str(file.version) == "2.0"
    assert (file.footer.numbers, file.num_rows, file.num_columns) == (version, 6, 1)
    assert read(file) == [[1, 2, 3, 4, 5, 6]]
    assert read(file, Rows.between(2, 5)) == [[3, 4, 5]]
    assert read(file, Rows.at(np.array([0, 3, 5]))) == [[1, 4, 6]]
    assert read(file, Rows.ranges(np.array([0, 4]), np.array([2, 6]))) == [[1, 2, 5, 6]]
    assert read(file, Rows.between(3, 3)) == [[]]


def test_one_chunk_a_page() -> None:
    file = HandFile(NUMBERS, 4, [HandColumn([flat_page(1, 2, 3), flat_page(4)])]).open()
    ((first, second),) = file.read_rows(file.schema.fields, file.column_of, Rows.between(1, 4))
    assert (first.to_pylist(), second.to_pylist()) == ([2, 3], [4])


def test_a_column_encoding_may_be_absent() -> None:
    column = HandColumn([flat_page(1)], encoding=None)
    assert read(HandFile(NUMBERS, 1, [column]).open()) == [[1]]


def test_a_page_encoding_may_not() -> None:
    made = HandFile(NUMBERS, 1, [HandColumn([HandPage(1, None, [ints(1)])])])
    with pytest.raises(FormatError, match=r"without an encoding .*column 'x', page 0.*x\.lance"):
        read(made.open())


def test_zone_indexed_column() -> None:
    zones = e.ZoneIndex(2, BufferRef(0, "column"), e.Values())
    column = HandColumn([flat_page(1, 2, 3)], encoding=zones, buffers=[b"zone map"])
    assert read(HandFile(NUMBERS, 3, [column]).open()) == [[1, 2, 3]]


@pytest.mark.parametrize("place", ["column", "file"])
def test_buffers_of_the_column_and_the_file(place: e.Place) -> None:
    items = ints(10, 20, 30)
    number = 0 if place == "column" else 1
    dictionary = e.Dictionary(e.Flat(8, B0), e.Flat(32, BufferRef(number, place)), 3)
    schema = pa.schema([("x", pa.dictionary(pa.int8(), pa.int32()))])
    column = HandColumn(
        [HandPage(3, dictionary, [b"\2\0\1"])], buffers=[items] if place == "column" else []
    )
    made = HandFile(schema, 3, [column], global_buffers=[items])
    assert read(made.open()) == [[30, 10, 20]]
    assert made.open().global_buffer(1).to_pybytes() == items


def test_struct_of_struct() -> None:
    inner = pa.struct([("b", pa.int32())])
    schema = pa.schema([("s", pa.struct([("a", pa.int32()), ("t", inner)]))])
    header = HandColumn([HandPage(3, e.SimpleStruct())])
    columns = [
        header,
        HandColumn([flat_page(1, 2, 3)]),
        header,
        HandColumn([flat_page(4), flat_page(5, 6)]),
    ]
    file = HandFile(schema, 3, columns).open()
    rows = [{"a": a, "t": {"b": b}} for a, b in ((1, 4), (2, 5), (3, 6))]
    assert read(file) == [rows]
    assert read(file, Rows.at(np.array([0, 2]))) == [[rows[0], rows[2]]]


def test_struct_without_fields_is_read() -> None:
    schema = pa.schema([("s", pa.struct([]))])
    file = HandFile(schema, 3, [HandColumn([HandPage(3, e.SimpleStruct())])]).open()
    assert read(file, Rows.between(1, 3)) == [[{}, {}]]


def lists_file(version: tuple[int, int] = (2, 0)) -> HandFile:
    """Two pages of lists; items 0..5 belong to the first, 6..8 to the second."""
    first = e.List(e.NoNulls(e.Flat(64, B0)), 7, 6)
    second = e.List(e.NoNulls(e.Flat(64, B0)), 4, 3)
    offsets = HandColumn(
        [
            HandPage(4, first, [longs(2, 9, 2, 6)]),  # [0, 1], NULL, [], [2, 3, 4, 5]
            HandPage(0, second, [b""]),
            HandPage(2, second, [longs(1, 3)]),  # [6], [7, 8]
        ]
    )
    offsets.pages[1].encoding = e.List(e.Flat(64, B0), 1, 0)
    items = HandColumn([flat_page(0, 1, 2), flat_page(3, 4, 5, 6, 7), flat_page(8)])
    return HandFile(pa.schema([("l", pa.list_(pa.int32()))]), 6, [offsets, items], version=version)


LISTS = [[0, 1], None, [], [2, 3, 4, 5], [6], [7, 8]]


def test_lists_over_pages_of_items() -> None:
    file = lists_file().open()
    assert read(file) == [LISTS]
    for start in range(7):
        for end in range(start, 7):
            assert read(file, Rows.between(start, end)) == [LISTS[start:end]]
    for seed in range(20):
        some = sorted(random.Random(seed).sample(range(6), 3))
        assert read(file, Rows.at(np.array(some))) == [[LISTS[row] for row in some]]


def test_list_items_beyond_the_column_are_refused() -> None:
    offsets = HandColumn([HandPage(1, e.List(e.Flat(64, B0), 9, 8), [longs(8)])])
    made = HandFile(
        pa.schema([("l", pa.list_(pa.int32()))]), 1, [offsets, HandColumn([flat_page(1, 2)])]
    )
    with pytest.raises(FormatError, match=r"rows up to 8 .* of 2 rows .*'l\.item'"):
        read(made.open())


def test_strings_of_early_writers_take_two_columns() -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.large_binary()), ("n", pa.int32())])
    text = e.List(e.NoNulls(e.Flat(64, B0)), 7, 6)
    letters = e.NoNulls(e.Flat(8, B0))
    columns = [
        HandColumn([HandPage(3, text, [longs(3, 10, 6)])]),
        HandColumn([HandPage(4, letters, [b"foob"]), HandPage(2, letters, [b"ar"])]),
        HandColumn([HandPage(3, text, [longs(0, 1, 6)])]),
        HandColumn([HandPage(6, letters, [b"uvwxyz"])]),
        HandColumn([flat_page(1, 2, 3)]),
    ]
    file = HandFile(schema, 3, columns, version=(0, 3)).open()
    assert list(file.column_of.values()) == [0, 2, 4]
    assert read(file) == [["foo", None, "bar"], [b"", b"u", b"vwxyz"], [1, 2, 3]]
    assert read(file, Rows.between(2, 3)) == [["bar"], [b"vwxyz"], [3]]


def test_blobs_are_read_and_checked() -> None:
    metadata = {"lance-encoding:blob": "true"}
    schema = pa.schema([pa.field("b", pa.large_binary(), metadata=metadata)])
    encoding = e.PackedStruct((e.Flat(64, B0), e.Flat(64, B0)), B0)
    places = longs(2, 3, 1, 0, 0, 0, 5, 1)  # b"HHH"; NULL; b""; b"H": the padding of the file
    column = HandColumn([HandPage(4, encoding, [places])], encoding=e.Blob(e.Values()))
    file = HandFile(schema, 4, [column], padding=8).open()
    assert read(file) == [[b"HHH", None, b"", b"H"]]
    bad = HandColumn(
        [HandPage(1, encoding, [longs(1 << 63, 1 << 63)])], encoding=e.Blob(e.Values())
    )
    with pytest.raises(FormatError, match="blob outside the file"):
        read(HandFile(schema, 1, [bad]).open())


def test_threads_may_share_a_file() -> None:
    file = lists_file().open()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: read(file), range(50))) == [[LISTS]] * 50


def test_read_of_rows_columns_and_buffers_out_of_range_is_refused() -> None:
    file = HandFile(NUMBERS, 2, [HandColumn([flat_page(1, 2)])]).open()
    with pytest.raises(ArgumentError, match="rows up to 3 of a file that has 2"):
        read(file, Rows.between(0, 3))
    with pytest.raises(ArgumentError, match=r"'x' \(id 0\) has no column"):
        file.read_rows(file.schema.fields, {}, Rows.between(0, 1))
    with pytest.raises(ArgumentError, match="global buffer 1 of a file that has 1"):
        file.global_buffer(1)


def test_columns_must_have_the_rows_of_the_file() -> None:
    made = HandFile(NUMBERS, 3, [HandColumn([flat_page(1, 2)])])
    with pytest.raises(FormatError, match="column 0 has 2 rows, the file 3"):
        read(made.open())


def footer(**changes: int) -> bytes:
    """A file of one column whose footer says something else."""
    data = bytes(HandFile(NUMBERS, 1, [HandColumn([flat_page(7)])]).data)
    names = ("metadata", "columns_at", "buffers_at", "buffers", "columns", "major", "minor")
    values = dict(zip(names, struct.unpack("<QQQIIHH", data[-40:-4]), strict=True)) | changes
    return data[:-40] + struct.pack("<QQQIIHH", *values.values()) + b"LANC"


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", FormatError, "not a Lance file: it has 0 bytes"),
        (bytes(100), FormatError, "not a Lance file"),
        (b"PAR1" * 20, FormatError, "PAR1"),
        (footer()[-20:], FormatError, "too short"),
        (footer(major=2, minor=3), UnsupportedError, "version 2.3.*reads versions 0.1 to 2.2"),
        (footer(major=0, minor=2), UnsupportedError, "version 0.1 has no columns"),
        (footer(major=9), UnsupportedError, "9"),
        (footer(columns_at=1 << 60), FormatError, "column table"),
        (footer(buffers_at=1 << 60), FormatError, "global buffer table"),
        (footer(columns=1 << 31), FormatError, "column table of 2147483648 entries"),
        (footer(metadata=1 << 60), FormatError, "behind the column table"),
        (footer(buffers=0), FormatError, "without global buffers"),
        (footer(columns_at=0), FormatError, "column"),
        (footer(buffers_at=1), FormatError, "global buffer 0"),
    ],
)
def test_invalid_footers_are_refused(data: bytes, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        read(open_bytes(data))
    assert "x.lance" in str(raised.value)


def test_damaged_file_raises_typed_error_or_reads() -> None:
    data = bytes(lists_file().data)
    chance = random.Random(11)
    files = set()
    for _ in range(1500):
        changed = bytearray(data[: chance.choice([len(data)] * 9 + [chance.randrange(len(data))])])
        for _ in range(chance.randint(1, 3)):
            if changed:
                changed[chance.randrange(len(changed))] = chance.choice(
                    [0, 255, chance.randrange(256)]
                )
        try:
            read(open_bytes(bytes(changed)))
        except LanceError as error:
            files.add(error.where.file)
    assert files == {"data/x.lance"}


def test_open_reads_the_end_once() -> None:
    pages = [flat_page(*range(number, number + 5000)) for number in range(20)]
    file, store = open_counted(bytes(HandFile(NUMBERS, 100_000, [HandColumn(pages)]).data))
    assert (store.counts.rounds, store.counts.requests) == (1, 1)
    assert store.counts.read_bytes == 64 * 1024
    file.columns()
    assert store.counts.rounds == 1


def test_metadata_longer_than_the_tail_takes_one_round_more() -> None:
    columns = [HandColumn([flat_page(number)]) for number in range(3000)]
    schema = pa.schema([(f"column {number}", pa.int32()) for number in range(3000)])
    file, store = open_counted(bytes(HandFile(schema, 1, columns).data))
    assert store.counts.rounds <= 3
    field = file.schema.fields[1234]
    store.counts.rounds = 0
    assert file.read_rows([field], file.column_of, Rows.between(0, 1))[0][0].to_pylist() == [1234]
    assert store.counts.rounds == 2


def test_align_cuts_at_all_borders() -> None:
    left = [pa.array([1, 2, 3]), pa.array([4])]
    right = [pa.array(["a"]), pa.array([], pa.string()), pa.array(["b", "c", "d"])]
    parts = [tuple(part.to_pylist() for part in parts) for parts in align([left, right])]
    assert parts == [([1], ["a"]), ([2, 3], ["b", "c"]), ([4], ["d"])]
