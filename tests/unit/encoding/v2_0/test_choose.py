"""The choice of an encoding for a page, and values under NULLs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.blobs import encode_blobs
from pennon.encoding.v2_0.choose import encode_page
from pennon.encoding.v2_0.encodings import (
    AllNulls,
    Binary,
    Blob,
    BufferRef,
    Compression,
    Dictionary,
    FixedSizeList,
    Flat,
    NoNulls,
    PackedStruct,
    SomeNulls,
    Values,
    ZoneIndex,
    without_zones,
)
from pennon.errors import ArgumentError, UnsupportedError
from tests.unit.encoding.contract import check_contract

ROWS = 1025


def values_of(kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind):
        return [i % 3 == 0 for i in range(ROWS)]
    if pa.types.is_fixed_size_binary(kind):
        return [bytes([i % 256]) * kind.byte_width for i in range(ROWS)]
    if pa.types.is_fixed_size_list(kind):
        item = bool if pa.types.is_boolean(kind.value_type) else int
        return [[item((i + j) % 2) for j in range(kind.list_size)] for i in range(ROWS)]
    return [i % 100 for i in range(ROWS)]


KINDS = [
    pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.binary(3),
    pa.timestamp("us", "UTC"), pa.duration("s"),
    pa.list_(pa.float32(), 4), pa.list_(pa.bool_(), 3), pa.list_(pa.int8(), 1),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("null_every", [0, 3, 1])
@pytest.mark.parametrize("offset", [0, 5])
def test_fixed_width_contract(kind: pa.DataType, null_every: int, offset: int) -> None:
    values = values_of(kind)
    rows = [None if null_every and i % null_every == 0 else v for i, v in enumerate(values)]
    array = pa.array(rows, kind).slice(offset)
    encoded = encode_page(array, {})
    buffers = [buffer.to_pybytes() for buffer in encoded.buffers]
    kinds = {0: NoNulls, 3: SomeNulls, 1: AllNulls}
    assert isinstance(encoded.encoding, kinds[null_every])
    check_contract(encoded.encoding, buffers, array)


@pytest.mark.parametrize("kind", [pa.decimal128(5, 2), pa.decimal256(50, 2)])
def test_decimals_are_their_bytes(kind: pa.DataType) -> None:
    array = pa.array([i - 50 for i in range(100)], pa.int8()).cast(kind)
    encoded = encode_page(array.slice(7), {})
    assert encoded.encoding == NoNulls(Flat(kind.bit_width, BufferRef(0)))
    assert encoded.buffers[0].to_pybytes() == array.buffers()[1][7 * kind.byte_width :].to_pybytes()


def test_half_floats_and_nan_payloads_pass_bit_by_bit() -> None:
    bits = np.array([0x7FF8000000000001, 0xFFF0000000000000, 1 << 63, 0], np.uint64)
    encoded = encode_page(pa.array(bits.view(np.float64)), {})
    assert encoded.buffers[0].to_pybytes() == bits.tobytes()
    half = pa.array(np.array([1.5, -0.0], np.float16))
    assert encode_page(half, {}).encoding == NoNulls(Flat(16, BufferRef(0)))


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.nulls(5, pa.string()), AllNulls),
        (pa.nulls(5), AllNulls),
        (pa.array(["a", "b"]), Binary),
        (pa.array(["a", "b"] * 50), Dictionary),
        (pa.array(["a", "b"] * 50, pa.large_string()), Binary),
        (pa.array([b"a", b"b"] * 50), Binary),
        (pa.array([str(i) for i in range(100)]), Binary),
        (pa.array([str(i % 99) for i in range(100)]), Binary),  # a dictionary would be larger
        (pa.array(["a"]).dictionary_encode(), Dictionary),
    ],
)
def test_encoding_choice_at_2_0_by_type_and_values(array: pa.Array, kind: pa.DataType) -> None:
    assert isinstance(encode_page(array, {}).encoding, kind)


def test_compression_is_for_the_bytes_of_binary_only() -> None:
    metadata = {"lance-encoding:compression": b"zstd", "lance-encoding:compression-level": b"9"}
    text = encode_page(pa.array(["a", "b"]), metadata).encoding
    assert text.bytes == Flat(8, BufferRef(1), Compression("zstd", 9))
    assert text.indices == NoNulls(Flat(64, BufferRef(0)))
    assert encode_page(pa.array([1]), metadata).encoding == NoNulls(Flat(64, BufferRef(0)))
    assert encode_page(pa.array(["a"]), {"lance-encoding:compression": b"new"}).encoding.bytes == (
        Flat(8, BufferRef(1))
    )


def test_compression_level_of_wrong_type_is_refused() -> None:
    metadata = {"lance-encoding:compression": b"zstd", "lance-encoding:compression-level": b"x"}
    with pytest.raises(ArgumentError, match="level"):
        encode_page(pa.array(["a"]), metadata)


def test_values_under_nulls_are_zero() -> None:
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        data = pa.py_buffer(np.array([1, 2, 3], dtype))
        array = pa.Array.from_buffers(pa.from_numpy_dtype(dtype), 3, [pa.py_buffer(b"\xfd"), data])
        validity, values = encode_page(array, {}).buffers
        assert validity.to_pybytes() == b"\x05"
        assert np.frombuffer(values, dtype).tolist() == [1, 0, 3]
    bits = [pa.py_buffer(b"\xfd"), pa.py_buffer(b"\xff")]
    _, values = encode_page(pa.Array.from_buffers(pa.bool_(), 3, bits), {}).buffers
    assert values.to_pybytes() == b"\x05"


def test_items_of_null_vectors_are_zero_and_need_no_validity() -> None:
    array = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int16(), 2))
    assert array.values.null_count == 2
    encoded = encode_page(array, {})
    assert encoded.encoding == SomeNulls(
        Flat(1, BufferRef(0)), FixedSizeList(2, NoNulls(Flat(16, BufferRef(1))))
    )
    assert np.frombuffer(encoded.buffers[1], np.int16).tolist() == [1, 2, 0, 0, 3, 4]
    inner = encode_page(pa.array([[1, None], None, [3, 4]], pa.list_(pa.int16(), 2)), {})
    assert inner.buffers[1].to_pybytes() == bytes([0b111101])


def test_vectors_of_null_items_store_no_values() -> None:
    """Whatever lies under the NULL row, no item that can be seen has a value."""
    for hidden in (None, [7, 7]):
        items = pa.array([None, None, *(hidden or (None, None))], pa.int16())
        array = pa.FixedSizeListArray.from_arrays(items, 2, mask=pa.array([False, True]))
        encoding = encode_page(array, {}).encoding
        assert encoding == SomeNulls(Flat(1, BufferRef(0)), FixedSizeList(2, AllNulls()))


def test_packed_struct_is_stored_row_by_row() -> None:
    kind = pa.struct([("x", pa.int8()), ("y", pa.int32()), ("z", pa.list_(pa.int16(), 2))])
    rows = [{"x": i % 100, "y": -i, "z": [i, i + 1]} for i in range(200)]
    encoded = encode_page(pa.array([*rows[:3], *rows], kind).slice(3), {})
    assert isinstance(encoded.encoding, PackedStruct)
    assert encoded.buffers[0][9:18].to_pybytes() == bytes.fromhex("01ffffffff01000200")
    check_contract(encoded.encoding, [encoded.buffers[0].to_pybytes()], pa.array(rows, kind))


@pytest.mark.parametrize("rows", [[{"x": 1}, None], [{"x": None}, {"x": 1}]])
def test_packed_struct_refuses_nulls(rows: Any) -> None:
    with pytest.raises(UnsupportedError, match="NULL"):
        encode_page(pa.array(rows, pa.struct([("x", pa.int8())])), {})


def test_blobs_are_described_by_position_and_size() -> None:
    written = []

    def write(value: Any) -> Any:
        written.append(value.to_pybytes())
        return 1000 * len(written)

    array = pa.array([b"skipped", b"abc", None, b"", b"de"], pa.large_binary()).slice(1)
    described = encode_blobs(array, write)
    assert written == [b"abc", b"de"]
    assert described.to_pylist() == [
        {"position": 1000, "size": 3},
        {"position": 1, "size": 0},
        {"position": 0, "size": 0},
        {"position": 2000, "size": 2},
    ]


def test_zones_are_unwrapped() -> None:
    assert without_zones(ZoneIndex(10, BufferRef(0), ZoneIndex(5, BufferRef(1), Values()))) == (
        Values()
    )
    assert without_zones(Blob(Values())) == Blob(Values())
