"""Files of version 0.1, built by hand: layout and refusals."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.rows import Rows
from pennon.errors import FormatError, LanceError
from pennon.file.container.opened_file import OpenedFile
from pennon.file.open import open_data_file
from pennon.io.memory import MemoryStore
from pennon.proto import file_pb2

I64 = struct.Struct("<q")


def message(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def field(number: int, name: str, logical: str, parent: int = -1) -> file_pb2.Field:
    made = file_pb2.Field(id=number, name=name, logical_type=logical, parent_id=parent)
    made.nullable = True
    return made


def build(
    pages: bytes,
    table: Sequence[int],
    borders: Sequence[int],
    fields: Sequence[file_pb2.Field],
    minor: int = 2,
) -> bytes:
    """Return a file: pages, page table, manifest, metadata, footer."""
    data = pages
    metadata = file_pb2.Metadata(batch_offsets=borders, page_table_position=len(data))
    data += np.array(table, "<i8").tobytes()
    metadata.manifest_position = len(data)
    data += message(file_pb2.Schema(fields=fields).SerializeToString())
    position = len(data)
    data += message(metadata.SerializeToString())
    return data + struct.pack("<QHH4s", position, 0, minor, b"LANC")


def opened(data: bytes) -> OpenedFile:
    store = MemoryStore()
    store.put("a.lance", data)
    return open_data_file(store.open("a.lance"))


def read(data: bytes, rows: Rows | None = None) -> list[list[object]]:
    file = opened(data)
    rows = rows or Rows.between(0, file.num_rows)
    found = file.read_rows(file.schema.fields, file.column_of, rows)
    for chunks in found:
        for chunk in chunks:
            chunk.validate(full=True)
    return [[value for chunk in chunks for value in chunk.to_pylist()] for chunks in found]


NUMBERS = np.array([1, 2, 3], "<i4").tobytes()
TEXT = b"abc" + np.array([12, 14, 14, 15], "<i8").tobytes()
LISTS = np.array([0, 2, 2, 3], "<i4").tobytes()
ITEMS = np.array([7, 8, 9], "<i2").tobytes()
PAGES = NUMBERS + TEXT + LISTS + ITEMS
TABLE = [0, 3, 15, 3, 47, 4, 63, 3]
FIELDS = [
    field(0, "n", "int32"),
    field(1, "t", "string"),
    field(2, "l", "list"),
    field(3, "item", "int16", 2),
]
FILE = build(PAGES, TABLE, [0, 3], FIELDS)


@pytest.mark.parametrize("minor", [0, 1, 2])
def test_parts_of_a_file(minor: int) -> None:
    data = build(PAGES, TABLE, [0, 3], FIELDS, minor)
    assert read(data) == [[1, 2, 3], ["ab", None, "c"], [[7, 8], [], [9]]]
    assert str(opened(data).version) == "0.1"


def test_rows_of_several_groups() -> None:
    pages = bytes(range(10))
    table = [0, 4, 0, 0, 4, 1, 5, 5]
    data = build(pages, table, [0, 4, 4, 5, 10], [field(0, "a", "uint8")])
    assert read(data) == [list(range(10))]
    assert read(data, Rows.between(3, 6)) == [[3, 4, 5]]
    picked = np.array([0, 3, 4, 9], np.int64)
    assert read(data, Rows.at(picked)) == [[0, 3, 4, 9]]
    assert read(data, Rows.at(np.empty(0, np.int64))) == [[]]


def test_bits_of_several_groups() -> None:
    pages = bytes([0b101, 0b011, 0b1])
    table = [0, 3, 1, 2, 2, 1]
    data = build(pages, table, [0, 3, 5, 6], [field(0, "a", "bool")])
    assert read(data) == [[True, False, True, True, True, True]]
    assert read(data, Rows.between(1, 4)) == [[False, True, True]]


def test_field_ids_with_gaps_are_read() -> None:
    data = build(
        bytes([1, 2]), [0, 1, 0, 0, 1, 1], [0, 1], [field(4, "a", "uint8"), field(6, "b", "uint8")]
    )
    assert read(data) == [[1], [2]]


def test_file_0_1_without_rows_is_read() -> None:
    data = build(b"-", [], [], [field(0, "a", "uint8"), field(1, "b", "string")])
    assert opened(data).num_rows == 0
    assert read(data) == [[], []]


def test_struct_of_two() -> None:
    fields = [field(0, "s", "struct"), field(1, "x", "uint8", 0), field(2, "y", "null", 0)]
    data = build(bytes([1, 2]), [0, 0, 0, 2, 2, 2], [0, 2], fields)
    assert read(data) == [[{"x": 1, "y": None}, {"x": 2, "y": None}]]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (build(PAGES, TABLE, [0, 3, 2], FIELDS), "end before they begin"),
        (build(PAGES, TABLE, [1, 3], FIELDS), "row 0"),
        (build(PAGES, TABLE, [0, 4], FIELDS), "has 3 rows, 4 are needed"),
        (build(PAGES, [0, 3], [0, 3], FIELDS), "outside|leave|rows"),
        (build(PAGES, [0, 1 << 40, *TABLE[2:]], [0, 1 << 30], FIELDS), "leave the file"),
        (build(PAGES, [-1, 3, *TABLE[2:]], [0, 3], FIELDS), "outside the file"),
        (build(PAGES, [1 << 62, 3, *TABLE[2:]], [0, 3], FIELDS), "outside the file"),
        (build(PAGES, [0, 3, 14, 3, *TABLE[4:]], [0, 3], FIELDS), "position"),
        (build(PAGES, [*TABLE[:4], 46, 4, 63, 3], [0, 3], FIELDS), "position"),
        (build(PAGES, [*TABLE[:6], 63, 2], [0, 3], FIELDS), "position"),
        (FILE[:-16] + struct.pack("<QHH4s", len(FILE) - 4, 0, 2, b"LANC"), "metadata"),
        (FILE[-16:], "metadata"),
        (FILE[-12:], "too short"),
    ],
)
def test_damaged_0_1_file_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        read(data)


def test_missing_page_table_of_many_groups_is_refused() -> None:
    many = build(b"-", [], range(1 << 15), [field(0, "a", "uint8")])
    with pytest.raises(LanceError, match="page table"):
        read(many)


def test_false_positions_beyond_32_bit_offsets_are_refused() -> None:
    # Four rows claim the same gigabyte, which is not there: the halves are refused in turn.
    positions = np.array([0, 1 << 30], "<i8").tobytes() * 4
    table = [each for group in range(4) for each in (group * 16, 1)]
    data = build(positions, table, range(5), [field(0, "t", "string")])
    with pytest.raises(FormatError, match="behind the end"):
        read(data)


def test_dictionary_without_values_is_null() -> None:
    made = field(0, "d", "dict:string:int8:false")
    made.dictionary.offset, made.dictionary.length = 2, 0
    pages = bytes([0, 0]) + I64.pack(2)
    assert read(build(pages, [0, 2], [0, 2], [made])) == [[None, None]]
    with pytest.raises(FormatError, match="dictionary index 1 of 1"):
        read(build(b"\x01" + pages[1:], [0, 2], [0, 2], [made]))


def test_dictionary_with_an_empty_value() -> None:
    made = field(0, "d", "dict:string:int8:false")
    made.dictionary.offset, made.dictionary.length = 6, 3
    pages = bytes([0, 1, 2, 1]) + b"ab" + np.array([4, 5, 5, 6], "<i8").tobytes()
    assert read(build(pages, [0, 4], [0, 4], [made])) == [["a", None, "b", None]]


def test_dictionary_index_beyond_its_values() -> None:
    made = field(0, "d", "dict:uint8:int8:false")
    made.dictionary.offset, made.dictionary.length = 2, 1
    assert read(build(bytes([0, 0, 5]), [0, 2], [0, 2], [made])) == [[5, 5]]
    with pytest.raises(FormatError, match="dictionary index 1 of 1"):
        read(build(bytes([0, 1, 5]), [0, 2], [0, 2], [made]))
    with pytest.raises(FormatError, match="dictionary index -1 of 1"):
        read(build(bytes([0xFF, 0xFF, 5]), [0, 2], [0, 2], [made]))


def test_read_of_rows_out_of_range_is_refused() -> None:
    with pytest.raises(LanceError, match="rows up to 4 of a file that has 3"):
        read(FILE, Rows.between(0, 4))


def test_types_are_checked_against_pages() -> None:
    for logical in ("fixed_size_binary:1000", "fixed_size_list:double:900"):
        with pytest.raises(FormatError, match="leave the file"):
            read(build(NUMBERS, [0, 3], [0, 3], [field(0, "a", logical)]))
    assert pa.types.is_int32(
        opened(FILE)
        .read_rows(opened(FILE).schema.fields[:1], opened(FILE).column_of, Rows.between(0, 1))[0][0]
        .type
    )


MOST = 2**31 - 1


def dictionary(values: str) -> file_pb2.Field:
    made = field(0, "a", f"dict:{values}:int32:false")
    made.dictionary.offset, made.dictionary.length = 0, MOST
    return made


CLAIMING = [
    [field(0, "a", "int64")],
    [field(0, "a", "bool")],
    [field(0, "a", "string")],
    [field(0, "a", "large_list"), field(1, "item", "string", 0)],
    [field(0, "a", "list.struct"), field(1, "item", "struct", 0), field(2, "x", "int8", 1)],
    [field(0, "a", "fixed_size_list:float:1000")],
    [field(0, "a", "fixed_size_binary:2147483647")],
    [dictionary("string")],
    [dictionary("int64")],
]


@pytest.mark.parametrize("fields", CLAIMING, ids=lambda fields: fields[0].logical_type)
@pytest.mark.parametrize("borders", [[0, MOST], [0, 1, MOST], [MOST * (n > 0) for n in range(99)]])
def test_false_row_counts_are_refused_before_allocation(
    fields: list[file_pb2.Field], borders: list[int]
) -> None:
    """Row groups and pages of 2**31 rows in a file of some hundred bytes."""
    groups = len(borders) - 1
    table = [0, MOST] * groups * len(fields)
    data = build(PAGES, table, borders, fields)
    with pytest.raises(FormatError), no_memory():
        read(data)
    with pytest.raises(FormatError), no_memory():
        read(data, Rows.between(MOST - 1, MOST))


@contextmanager
def no_memory() -> Iterator[None]:
    """Fail if more than a megabyte is taken at any moment, by Python or by Arrow."""
    pool = pa.default_memory_pool()
    before, most = pool.bytes_allocated(), pool.max_memory()
    tracemalloc.start()
    try:
        yield
    finally:
        taken = tracemalloc.get_traced_memory()[1] + pool.bytes_allocated() - before
        tracemalloc.stop()
        assert taken < 1_000_000
        assert pool.max_memory() <= max(most, before + 1_000_000)


@pytest.mark.parametrize("groups", [2**16, 2**22])
def test_row_groups_without_a_page_table_cost_no_memory(groups: int) -> None:
    """A row group takes a byte of the metadata if it is empty, and 16 bytes of the page table."""
    data = build(PAGES, [0, 3], bytes(groups + 1), [field(0, "a", "int32")])
    with pytest.raises(FormatError, match=f"{groups} row groups does not fit"):
        opened(data)


def test_null_column_of_many_rows_uses_no_memory() -> None:
    data = build(PAGES, [0, MOST], [0, MOST], [field(0, "a", "null")])
    with no_memory():
        file = opened(data)
        ((chunk,),) = file.read_rows(file.schema.fields, file.column_of, Rows.between(0, MOST))
        assert (len(chunk), chunk.null_count) == (MOST, MOST)
