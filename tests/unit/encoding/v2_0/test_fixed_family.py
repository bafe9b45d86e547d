"""Every encoding of the fixed-width family against the shared contract, bytes made by hand."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.block import FixedWidthBlock, NullableBlock, VariableBlock
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import run
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0 import encodings as e
from pennon.encoding.v2_0.codecs import CODECS
from pennon.encoding.v2_0.encodings import BufferRef
from pennon.encoding.v2_0.nullable import with_validity
from pennon.errors import FormatError, TooLargeError, UnsupportedError
from pennon.testing.encoding_contract import PageInMemory
from tests.unit.encoding.contract import check_contract

SIZES = (0, 1, 3, 64, 1024, 1025, 2500)
B0, B1, B2 = BufferRef(0), BufferRef(1), BufferRef(2)


def bits(values: np.ndarray) -> bytes:
    return np.packbits(values, bitorder="little").tobytes()


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize(
    "data_type", [pa.int8(), pa.uint16(), pa.float32(), pa.int64(), pa.binary(3), pa.binary(16)]
)
def test_flat_encoding_of_bytes(count: int, data_type: pa.DataType) -> None:
    width = data_type.bit_width // 8
    data = np.random.default_rng(count).integers(0, 256, count * width, np.uint8).tobytes()
    expected = pa.Array.from_buffers(data_type, count, [None, pa.py_buffer(data)])
    if data_type == pa.float32():
        expected = pa.array(np.arange(count, dtype=np.float32))
        data = np.arange(count, dtype=np.float32).tobytes()
    check_contract(e.Flat(8 * width, B0), [data], expected)


@pytest.mark.parametrize("count", SIZES)
def test_flat_encoding_of_bits(count: int) -> None:
    values = np.random.default_rng(count).random(count) < 0.5
    check_contract(e.Flat(1, B0), [bits(values)], pa.array(values))


def test_flat_bits_at_distant_rows_are_gathered() -> None:
    count = 8 * 1024 * 1024
    values = np.zeros(count, bool)
    wanted = np.array([3, 77, count // 2, count - 1])
    values[wanted[1:]] = True
    page = PageInMemory.build(e.Flat(1, B0), count, [bits(values)])
    assert page.decode(pa.bool_(), Rows.at(wanted)).to_pylist() == [False, True, True, True]


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("scheme", ["zstd", "zstd bare", "lz4", "none"])
def test_flat_encoding_with_compression(count: int, scheme: str) -> None:
    values = np.arange(count, dtype=np.int32) // 10
    plain = values.tobytes()
    if scheme == "zstd":
        data = struct.pack("<Q", len(plain)) + pa.Codec("zstd").compress(plain).to_pybytes()
    elif scheme == "zstd bare":
        data = pa.Codec("zstd").compress(plain).to_pybytes()
    elif scheme == "lz4":
        data = struct.pack("<I", len(plain)) + pa.Codec("lz4_raw").compress(plain).to_pybytes()
    else:
        data = plain
    flat = e.Flat(32, B0, e.Compression(scheme.partition(" ")[0]))
    check_contract(flat, [data], pa.array(values))


def test_flat_encoding_of_compressed_bits() -> None:
    values = np.arange(100) % 3 == 0
    data = struct.pack("<Q", 13) + pa.Codec("zstd").compress(bits(values)).to_pybytes()
    check_contract(e.Flat(1, B0, e.Compression("zstd")), [data], pa.array(values))


@pytest.mark.parametrize(
    ("scheme", "data", "error"),
    [
        ("zstd", struct.pack("<Q", 1 << 40) + bytes(100), TooLargeError),
        ("zstd", struct.pack("<Q", 400) + bytes(100), FormatError),
        ("zstd", b"\x28\xb5\x2f\xfd\x00garbage", FormatError),
        ("lz4", struct.pack("<I", (1 << 32) - 1) + bytes(100), TooLargeError),
        ("lz4", b"\x01", FormatError),
        ("lz4", struct.pack("<I", 400) + b"\x10a", FormatError),
        ("snappy", b"abc", UnsupportedError),
    ],
)
def test_damaged_compressed_flat_page_is_refused(
    scheme: str, data: bytes, error: type[Exception]
) -> None:
    page = PageInMemory.build(e.Flat(32, B0, e.Compression(scheme)), 100, [data])
    with pytest.raises(error):
        page.decode(pa.int32(), Rows.between(0, 100))


def test_a_zstd_bomb_without_declared_size_is_stopped() -> None:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        for _ in range(150):
            stream.write(bytes(1 << 20))
    bomb = sink.getvalue().to_pybytes()
    assert len(bomb) < 100_000
    page = PageInMemory.build(e.Flat(8, B0, e.Compression("zstd")), 10, [bomb])
    with pytest.raises(TooLargeError):
        page.decode(pa.int8(), Rows.between(0, 10))


@pytest.mark.parametrize(("width", "error"), [(0, FormatError), (12, UnsupportedError)])
def test_flat_of_odd_widths(width: int, error: type[Exception]) -> None:
    page = PageInMemory.build(e.Flat(width, B0), 4, [bytes(100)])
    with pytest.raises(error, match="flat encoding"):
        page.decode(pa.int8(), Rows.between(0, 4))


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_nullable_encodings(count: int, share: float) -> None:
    rng = np.random.default_rng(count)
    values, nulls = rng.integers(0, 1 << 30, count, np.int32), rng.random(count) < share
    expected = pa.array(values, mask=nulls)
    some = e.SomeNulls(e.Flat(1, B0), e.Flat(32, B1))
    check_contract(some, [bits(~nulls), values.tobytes()], expected)
    check_contract(e.NoNulls(e.Flat(32, B0)), [values.tobytes()], pa.array(values))
    check_contract(e.AllNulls(), [], pa.nulls(count, pa.int32()))
    check_contract(e.AllNulls(), [], pa.nulls(count))


def test_validity_must_be_bits() -> None:
    page = PageInMemory.build(e.SomeNulls(e.Flat(8, B0), e.Flat(32, B1)), 4, [bytes(4), bytes(16)])
    with pytest.raises(FormatError, match="validity"):
        page.decode(pa.int32(), Rows.between(0, 4))


def test_two_validities_must_agree() -> None:
    values = FixedWidthBlock(3, 8, pa.py_buffer(b"abc"))
    inner = NullableBlock(3, pa.py_buffer(b"\x06"), values)
    both = with_validity(pa.py_buffer(b"\x03"), inner)
    assert isinstance(both, NullableBlock)
    assert both.validity.to_pybytes() == b"\x02"


@pytest.mark.parametrize("count", SIZES)
def test_fixed_size_list(count: int) -> None:
    rng = np.random.default_rng(count)
    items = rng.random(count * 4).astype(np.float32)
    expected = pa.FixedSizeListArray.from_arrays(pa.array(items), 4)
    check_contract(
        e.NoNulls(e.FixedSizeList(4, e.NoNulls(e.Flat(32, B0)))), [items.tobytes()], expected
    )


@pytest.mark.parametrize("count", SIZES)
def test_fixed_size_list_of_bools_with_nulls_everywhere(count: int) -> None:
    rng = np.random.default_rng(count)
    items, holes, nulls = rng.random((3, count * 5)) < 0.4
    nulls = nulls[:count]
    expected = pa.FixedSizeListArray.from_arrays(
        pa.array(items, mask=holes), 5, mask=pa.array(nulls)
    )
    inner = e.FixedSizeList(5, e.SomeNulls(e.Flat(1, B1), e.Flat(1, B2)))
    encoding = e.SomeNulls(e.Flat(1, B0), inner)
    check_contract(encoding, [bits(~nulls), bits(~holes), bits(items)], expected)


@pytest.mark.parametrize("count", SIZES)
def test_fixed_size_list_of_fixed_size_lists(count: int) -> None:
    items = np.arange(count * 6, dtype=np.int16)
    expected = pa.FixedSizeListArray.from_arrays(
        pa.FixedSizeListArray.from_arrays(pa.array(items), 3), 2
    )
    encoding = e.FixedSizeList(2, e.NoNulls(e.FixedSizeList(3, e.NoNulls(e.Flat(16, B0)))))
    check_contract(encoding, [items.tobytes()], expected)


@pytest.mark.parametrize(
    ("encoding", "error"),
    [
        (e.FixedSizeList(4, e.Flat(32, B0), has_validity=True), UnsupportedError),
        (e.FixedSizeList(0, e.Flat(32, B0)), FormatError),
        (e.FixedSizeList((1 << 32) - 1, e.Flat(32, B0)), FormatError),
    ],
)
def test_fixed_size_list_refusals(encoding: e.FixedSizeList, error: type[Exception]) -> None:
    page = PageInMemory.build(encoding, 2, [bytes(32)])
    with pytest.raises(error):
        page.decode(pa.list_(pa.float32(), 4), Rows.between(0, 2))


def test_nested_dimensions_cannot_overflow() -> None:
    encoding: e.ArrayEncoding = e.Flat(32, B0)
    for _ in range(4):
        encoding = e.FixedSizeList((1 << 31) - 1, encoding)
    page = PageInMemory.build(encoding, 2, [bytes(32)])
    with pytest.raises(FormatError):
        page.decode(pa.list_(pa.float32(), 4), Rows.between(0, 2))


@pytest.mark.parametrize("count", SIZES)
def test_packed_struct_encoding(count: int) -> None:
    rng = np.random.default_rng(count)
    layout = np.dtype([("x", "<i1"), ("y", "<f8"), ("z", "<i2", 3)])
    table = np.frombuffer(rng.integers(0, 100, count * layout.itemsize, np.uint8), layout)
    z = pa.FixedSizeListArray.from_arrays(pa.array(table["z"].reshape(-1)), 3)
    expected = pa.StructArray.from_arrays(
        [pa.array(table["x"]), pa.array(table["y"]), z], ["x", "y", "z"]
    )
    fields = (e.Flat(8, B0), e.NoNulls(e.Flat(64, B0)), e.FixedSizeList(3, e.Flat(16, B0)))
    check_contract(e.PackedStruct(fields, B0), [table.tobytes()], expected)


def test_packed_struct_of_variable_width_is_refused() -> None:
    text = e.Binary(e.Flat(64, B0), e.Flat(8, B0), 4)
    page = PageInMemory.build(e.PackedStruct((text,), B0), 2, [bytes(100)])
    with pytest.raises(UnsupportedError, match="Binary"):
        page.decode(pa.struct([("a", pa.string())]), Rows.between(0, 2))


def pack_plain(values: list[int], width: int) -> bytes:
    """The slow twin of bit packing: one long number."""
    whole = sum(
        (value & ((1 << width) - 1)) << (number * width) for number, value in enumerate(values)
    )
    return whole.to_bytes(-(-len(values) * width // 8), "little")


@pytest.mark.parametrize("count", [0, 1, 3, 64, 200])
@pytest.mark.parametrize("width", [1, 3, 7, 8, 9, 13, 31, 32])
@pytest.mark.parametrize("signed", [False, True])
def test_bitpacked_encoding_of_every_width(count: int, width: int, signed: bool) -> None:
    low, high = (-(1 << width - 1), 1 << width - 1) if signed else (0, 1 << width)
    values = np.random.default_rng(count).integers(low, high, count).tolist()
    data_type = pa.int32() if signed else pa.uint32()
    encoding = e.Bitpacked(width, 32, B0, signed)
    check_contract(encoding, [pack_plain(values, width)], pa.array(values, data_type))


def test_bitpacked_spec_bytes() -> None:
    # -3 = 101, -1 = 111, -4 = 100 in three bits; the first value has the lowest bits: 1 00111101
    page = PageInMemory.build(e.Bitpacked(3, 8, B0, signed=True), 3, [b"\x3d\x01"])
    assert page.decode(pa.int8(), Rows.between(0, 3)).to_pylist() == [-3, -1, -4]


def pack_fastlanes(values: np.ndarray, width: int) -> bytes:
    """The slow twin of FastLanes packing: each lane a long number."""
    word = values.dtype.itemsize * 8
    lanes = 1024 // word
    order = (0, 4, 2, 6, 1, 5, 3, 7)
    chunks = []
    padded = np.concatenate([values, np.zeros(-len(values) % 1024, values.dtype)])
    for chunk in padded.reshape(-1, 1024):
        words = np.zeros((width, lanes), values.dtype)
        for lane in range(lanes):
            rows = [16 * order[row // 8] + 128 * (row % 8) + lane for row in range(word)]
            whole = sum(int(chunk[place]) << (row * width) for row, place in enumerate(rows))
            words[:, lane] = [
                (whole >> (number * word)) & ((1 << word) - 1) for number in range(width)
            ]
        chunks.append(words.tobytes())
    return b"".join(chunks)


@pytest.mark.parametrize("count", [0, 1, 1024, 1025, 3000])
@pytest.mark.parametrize(
    ("word", "width"),
    [(8, 1), (8, 5), (8, 8), (16, 11), (32, 1), (32, 17), (32, 32), (64, 3), (64, 33), (64, 64)],
)
def test_bitpacked_for_non_neg(count: int, word: int, width: int) -> None:
    dtype = np.dtype(f"u{word // 8}")
    high = (1 << width) - 1
    values = np.random.default_rng(count).integers(0, high, count, dtype, endpoint=True)
    encoding = e.BitpackedForNonNeg(width, word, B0)
    check_contract(encoding, [pack_fastlanes(values, width)], pa.array(values))


@pytest.mark.parametrize(
    ("width", "word"), [(0, 32), (33, 32), (5, 12), (3, 0), (1 << 40, 1 << 40)]
)
def test_bitpacked_encoding_of_invalid_width_is_refused(width: int, word: int) -> None:
    for encoding in (
        e.Bitpacked(width, word, B0, signed=False),
        e.BitpackedForNonNeg(width, word, B0),
    ):
        page = PageInMemory.build(encoding, 2, [bytes(8192)])
        with pytest.raises(FormatError):
            page.decode(pa.int32(), Rows.between(0, 2))


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("inner", [8, 40])
def test_fixed_size_binary(count: int, inner: int) -> None:
    values = [b"%05d" % number for number in range(count)]
    encoding = e.FixedSizeBinary(e.Flat(inner, B0), 5)
    for data_type in (pa.binary(), pa.large_string()):
        check_contract(encoding, [b"".join(values)], pa.array(values, pa.binary()).cast(data_type))


@pytest.mark.parametrize("count", SIZES)
def test_constant_encoding(count: int) -> None:
    check_contract(e.Constant(struct.pack("<i", -7)), [], pa.array([-7] * count, pa.int32()))


@pytest.mark.parametrize("value", [b"", bytes(33)])
def test_constant_encoding_of_unsupported_values_is_refused(value: bytes) -> None:
    page = PageInMemory.build(e.Constant(value), 2, [])
    with pytest.raises(UnsupportedError):
        page.decode(pa.int32(), Rows.between(0, 2))


def test_encodings_without_values_are_refused() -> None:
    for encoding in (e.SimpleStruct(), e.List(e.Flat(64, B0), 2, 1)):
        with pytest.raises(FormatError, match=type(encoding).__name__):
            CODECS.decode(encoding, PageBuffers(1, ()), Rows.between(0, 1))


def test_missing_page_buffer_is_refused() -> None:
    page = PageInMemory.build(e.Flat(8, BufferRef(3, "column")), 2, [bytes(2)])
    with pytest.raises(FormatError, match="column buffer 3"):
        page.decode(pa.int8(), Rows.between(0, 2))


def test_offsets_of_fixed_size_binary_are_64_bits() -> None:
    page = PageInMemory.build(e.FixedSizeBinary(e.Flat(8, B0), 1), 2, [b"ab"])
    block = run(CODECS.decode(page.encoding, page.buffers, Rows.between(0, 2)), page.read)
    assert isinstance(block, VariableBlock)
    assert block.offset_bits == 64
