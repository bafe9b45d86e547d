"""Pages that say they hold 2**40 values, and have no bytes for them, cost no memory.

Some are sound: a page of NULLs, or of one value, takes no bytes for a row.  Any rows of it read; all at
once are refused.  The others lie, and are refused before anything is allocated for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

import pennon
from pennon.core.byte_ranges import ByteRange
from pennon.encoding.rows import Rows
from pennon.errors import FormatError, TooLargeError
from pennon.file import LanceFileReader, LanceFileWriter
from pennon.file.open import open_container_file
from pennon.io.memory import MemoryStore
from pennon.proto import encodings_v2_1_pb2 as pb
from tests.faults.damage import with_metadata
from tests.faults.structure import parts_of
from tests.faults.try_mutants import make_table
from tests.limits.peak import peak_bytes, start_peak

MIB = 1 << 20
MANY = 1 << 40
MOST_ROWS = (1 << 32) - 1
"""A fragment of a table cannot have more: row addresses have 32 bits for it."""
STORE = "nothing"
PATH = "x.lance"


@contextmanager
def costs_at_most(limit: int) -> Iterator[None]:
    before = start_peak()
    yield
    assert peak_bytes() - before < limit


def file_of(
    layout: pb.PageLayout, data_type: pa.DataType, rows: int = MANY, buffers: tuple[bytes, ...] = ()
) -> bytes:
    """Return a file of one column with one page, which says that it has ``rows`` rows."""
    path = f"memory://{STORE}/sound.lance"
    with LanceFileWriter(path, pa.schema([("c", data_type)]), version="2.1") as writer:
        writer.write_batch(pa.table({"c": pa.nulls(3, data_type)}))
    reader = MemoryStore(STORE).open("sound.lance")
    sound = reader.read([ByteRange(0, reader.size_bytes)])[0].to_pybytes()
    parts = parts_of(sound)
    (column,), (page,) = parts.columns, parts.columns[0].pages
    del page.buffer_offsets[:], page.buffer_sizes[:]
    data = sound[:-40]
    for each in buffers:
        data += bytes(-len(data) % 64)
        page.buffer_offsets.append(len(data))
        page.buffer_sizes.append(len(each))
        data += each
    wrapped = AnyMessage.FromString(page.encoding.direct.encoding)
    wrapped.value = layout.SerializeToString()
    page.encoding.direct.encoding = wrapped.SerializeToString()
    page.length = parts.descriptor.length = rows
    messages = [column.SerializeToString()]
    return with_metadata(data + bytes(40), parts, parts.descriptor.SerializeToString(), messages)


def constant(value: bytes | None = None, layer: Any = pb.REPDEF_NULLABLE_ITEM) -> pb.PageLayout:
    found = pb.PageLayout()
    found.constant_layout.layers.append(layer)
    if value is not None:
        found.constant_layout.inline_value = value
    return found


def flat(bits: int) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def runs(bits: int) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(rle=pb.Rle(values=flat(bits), run_lengths=flat(8)))


def packed(bits: int, width: int) -> pb.CompressiveEncoding:
    inner = pb.OutOfLineBitpacking(uncompressed_bits_per_value=bits, values=flat(width))
    return pb.CompressiveEncoding(out_of_line_bitpacking=inner)


def inline(bits: int) -> pb.CompressiveEncoding:
    inner = pb.InlineBitpacking(uncompressed_bits_per_value=bits)
    return pb.CompressiveEncoding(inline_bitpacking=inner)


def compressed(scheme: Any, values: pb.CompressiveEncoding) -> pb.CompressiveEncoding:
    inner = pb.General(compression=pb.BufferCompression(scheme=scheme), values=values)
    return pb.CompressiveEncoding(general=inner)


def lists(dimension: int, values: pb.CompressiveEncoding) -> pb.CompressiveEncoding:
    inner = pb.FixedSizeList(items_per_value=dimension, values=values)
    return pb.CompressiveEncoding(fixed_size_list=inner)


def mini_block(
    values: pb.CompressiveEncoding,
    items: int = MANY,
    dictionary: pb.CompressiveEncoding | None = None,
    dictionary_items: int = 0,
    buffers: int = 1,
) -> pb.PageLayout:
    found = pb.PageLayout()
    found.mini_block_layout.value_compression.CopyFrom(values)
    found.mini_block_layout.layers.append(pb.REPDEF_ALL_VALID_ITEM)
    found.mini_block_layout.num_buffers = buffers
    found.mini_block_layout.num_items = items
    if dictionary is not None:
        found.mini_block_layout.dictionary.CopyFrom(dictionary)
        found.mini_block_layout.num_dictionary_items = dictionary_items
    return found


def levels(encoding: pb.CompressiveEncoding) -> pb.PageLayout:
    found = constant()
    found.constant_layout.def_compression.CopyFrom(encoding)
    found.constant_layout.num_def_values = MANY
    return found


# --- sound ----------------------------------------------------------------------------------------

VECTOR = pa.list_(pa.float32(), 1024)
SOUND = {
    "NULLs": (constant(), pa.int64(), None),
    "NULL vectors": (constant(), VECTOR, None),
    "NULL texts": (constant(), pa.large_string(), None),
    "one number": (constant(bytes([7] + 7 * [0]), pb.REPDEF_ALL_VALID_ITEM), pa.int64(), 7),
    "one value of 32 bytes": (
        constant(b"x" * 32, pb.REPDEF_ALL_VALID_ITEM),
        pa.binary(32),
        b"x" * 32,
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_rows_of_a_page_without_bytes_use_little_memory(name: str) -> None:
    layout, data_type, value = SOUND[name]
    MemoryStore(STORE).put(PATH, file_of(layout, data_type))
    with costs_at_most(96 * MIB):
        reader = LanceFileReader(f"memory://{STORE}/{PATH}")
        assert reader.num_rows() == MANY
        assert _values(reader.take_rows([0, MANY // 2, MANY - 1]).to_table()) == [value] * 3
        assert _values(reader.read_range(MANY - 9, 9).to_table()) == [value] * 9
        first = next(iter(reader.read_all().to_batches()))
        assert _values(pa.Table.from_batches([first.slice(0, 2)])) == [value] * 2


@pytest.mark.parametrize("name", SOUND)
def test_rows_of_a_table_without_bytes_use_little_memory(name: str) -> None:
    layout, data_type, value = SOUND[name]
    make_table(file_of(layout, data_type, MOST_ROWS))
    with costs_at_most(192 * MIB):
        table = pennon.dataset("memory://mutants")
        assert table.count_rows() == MOST_ROWS
        assert _values(table.take([MOST_ROWS - 1, 5])) == [value] * 2
        assert _values(table.to_table(offset=MOST_ROWS - 9, limit=9)) == [value] * 9
        first = next(iter(table.to_batches()))
        assert _values(pa.Table.from_batches([first.slice(0, 2)])) == [value] * 2


def _values(table: pa.Table) -> list[object]:
    return table["c"].to_pylist()


@pytest.mark.parametrize("name", SOUND)
def test_all_rows_at_once_are_refused(name: str) -> None:
    layout, data_type, _ = SOUND[name]
    MemoryStore(STORE).put(PATH, file_of(layout, data_type))
    file = open_container_file(MemoryStore(STORE).open(PATH))
    with costs_at_most(16 * MIB), pytest.raises(TooLargeError, match="read fewer rows"):
        file.read_rows(file.schema.fields, file.column_of, Rows.between(0, MANY))


# --- lies -----------------------------------------------------------------------------------------

WORD = bytes(2)
CHUNK = bytes([0, 0, 0, 0, 0, 0, 0, 0])
ZSTD, LZ4 = 2, 1
LIES: dict[str, tuple[pb.PageLayout, tuple[bytes, ...]]] = {
    "values in one chunk": (mini_block(flat(64)), (WORD, CHUNK)),
    "runs": (mini_block(runs(64), buffers=2), (WORD, CHUNK)),
    "packed to nothing": (mini_block(packed(64, 0)), (WORD, CHUNK)),
    "packed in-line to nothing": (mini_block(inline(64)), (WORD, CHUNK)),
    "lists of 2**31 - 1 items": (mini_block(lists((1 << 31) - 1, flat(64)), 3), (WORD, CHUNK)),
    "levels as runs": (levels(runs(16)), (b"", bytes(8) + b"\1\0\xff")),
    "levels packed to nothing": (levels(packed(16, 0)), (b"", bytes(8))),
    "levels packed in-line": (levels(inline(16)), (b"", bytes(2))),
    "levels in zstd": (
        levels(compressed(ZSTD, flat(16))),
        (b"", MANY.to_bytes(8, "little") + pa.Codec("zstd").compress(b"x", asbytes=True)),
    ),
    "levels in lz4": (levels(compressed(LZ4, flat(16))), (b"", b"\xff\xff\xff\xff\x10x")),
    "plain levels": (levels(flat(16)), (b"", bytes(6))),
}


@pytest.mark.parametrize("name", LIES)
def test_pages_with_false_value_counts_are_refused(name: str) -> None:
    layout, buffers = LIES[name]
    _refuses(file_of(layout, pa.int64(), buffers=buffers))


DICTIONARIES = {
    "flat": (flat(64), bytes(8)),
    "zstd": (compressed(ZSTD, flat(64)), (1 << 39).to_bytes(8, "little") + b"\x28\xb5\x2f\xfd"),
    "lz4": (compressed(LZ4, flat(64)), b"\xff\xff\xff\x7f\0"),
    "packed": (packed(64, 0), b""),
}


@pytest.mark.parametrize("items", [3, 1 << 31, MANY])
@pytest.mark.parametrize("name", DICTIONARIES)
def test_pages_with_false_dictionary_sizes_are_refused(name: str, items: int) -> None:
    encoding, stored = DICTIONARIES[name]
    layout = mini_block(flat(32), 3, encoding, items)
    _refuses(file_of(layout, pa.int64(), 3, (WORD, CHUNK * 4, stored)))


def test_full_zip_pages_with_false_value_counts_are_refused() -> None:
    layout = pb.PageLayout()
    zipped = layout.full_zip_layout
    zipped.bits_per_value = 64
    zipped.num_items = zipped.num_visible_items = (1 << 32) - 1
    zipped.layers.append(pb.REPDEF_ALL_VALID_ITEM)
    zipped.value_compression.CopyFrom(flat(64))
    _refuses(file_of(layout, pa.int64(), buffers=(bytes(24),)))
    zipped.bits_per_offset = 64
    zipped.value_compression.CopyFrom(
        pb.CompressiveEncoding(variable=pb.Variable(offsets=flat(64)))
    )
    entry = MANY.to_bytes(8, "little")
    _refuses(file_of(layout, pa.large_string(), 1, (entry, bytes(2))))
    _refuses(file_of(layout, pa.large_string(), buffers=(entry, bytes(2))))


@pytest.mark.parametrize("rows", [1 << 31, MANY, 1 << 61, (1 << 64) - 1])
def test_files_with_false_row_counts_are_refused(rows: int) -> None:
    data = file_of(constant(), pa.int64(), 3)
    parts = parts_of(data)
    parts.descriptor.length = rows
    columns = [column.SerializeToString() for column in parts.columns]
    _refuses(with_metadata(data, parts, parts.descriptor.SerializeToString(), columns))


def _refuses(data: bytes) -> None:
    """Assert that reading is refused, in each way, and costs next to nothing."""
    MemoryStore(STORE).put(PATH, data)
    reads: list[Callable[[LanceFileReader], object]] = [
        lambda reader: reader.read_all().to_table(),
        lambda reader: reader.read_range(0, 1).to_table(),
        lambda reader: reader.take_rows([reader.num_rows() - 1]).to_table(),
    ]
    for read in reads:
        with costs_at_most(16 * MIB), pytest.raises(FormatError):
            read(LanceFileReader(f"memory://{STORE}/{PATH}"))
