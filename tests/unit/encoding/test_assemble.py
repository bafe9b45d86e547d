"""Blocks and types: an array without a copy if they fit, else an error."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.assemble import aligned, assemble, assemble_as, retype
from pennon.encoding.block import (
    AllNullBlock,
    DictionaryBlock,
    FixedSizeListBlock,
    FixedWidthBlock,
    ListBlock,
    NullableBlock,
    StructBlock,
    VariableBlock,
)
from pennon.errors import FormatError, TooLargeError
from pennon.schema.arrow import schema_from_arrow


def fixed(values: list[int], dtype: str) -> FixedWidthBlock:
    array = np.array(values, dtype)
    return FixedWidthBlock(len(values), 8 * array.itemsize, pa.py_buffer(array))


def strings(*values: bytes, bits: int = 32) -> VariableBlock:
    ends = np.cumsum([0, *map(len, values)]).astype(f"i{bits // 8}")
    return VariableBlock(len(values), bits, pa.py_buffer(ends), pa.py_buffer(b"".join(values)))


def test_aligned_values_are_not_copied() -> None:
    block = fixed([1, 2, 3], "i8")
    assert assemble_as(block, pa.int64()).buffers()[1].address == block.data.address


def test_unaligned_values_are_copied() -> None:
    data = pa.py_buffer(b"x" + np.array([1, 2, 3], "i8").tobytes()).slice(1)
    data = data if data.address % 8 else pa.py_buffer(b"xy" + data.to_pybytes()).slice(2)
    array = assemble_as(FixedWidthBlock(3, 64, data), pa.int64())
    assert array.to_pylist() == [1, 2, 3]
    assert array.buffers()[1].address % 8 == 0
    assert aligned(data, 3) is data  # bytes have no alignment


@pytest.mark.parametrize(
    ("block", "data_type"),
    [
        (fixed([1], "i4"), pa.int64()),
        (fixed([1], "i4"), pa.string()),
        (fixed([1], "i4"), pa.struct([("a", pa.int32())])),
        (fixed([1], "i4"), pa.null()),
        (strings(b"a"), pa.int32()),
        (FixedSizeListBlock(1, 1, fixed([1], "i4")), pa.list_(pa.int32(), 2)),
        (FixedSizeListBlock(1, 1, fixed([1], "i4")), pa.int32()),
        (StructBlock(1, (fixed([1], "i4"),)), pa.int32()),
        (StructBlock(1, ()), pa.struct([("a", pa.int32())])),
        (ListBlock(1, 32, pa.py_buffer(bytes(8)), None, fixed([1], "i4")), pa.int32()),
        (FixedWidthBlock(2, 24, pa.py_buffer(bytes(6))), pa.list_(pa.int16(), 2)),
        (FixedWidthBlock(3, 32, pa.py_buffer(bytes(8))), pa.int32()),
        (
            DictionaryBlock(1, FixedWidthBlock(1, 1, pa.py_buffer(b"\1")), strings(b"a")),
            pa.string(),
        ),
    ],
)
def test_assemble_refuses_blocks_of_another_type(
    block: FixedWidthBlock, data_type: pa.DataType
) -> None:
    with pytest.raises(FormatError):
        assemble_as(block, data_type)


def test_offsets_change_their_width() -> None:
    for bits in (32, 64):
        for data_type in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
            array = assemble_as(strings(b"ab", b"", b"c", bits=bits), data_type)
            array.validate(full=True)
            assert array.cast(pa.binary()).to_pylist() == [b"ab", b"", b"c"]


def test_offsets_too_large_for_the_type() -> None:
    offsets = pa.py_buffer(np.array([0, 1 << 31], np.int64))
    with pytest.raises(TooLargeError, match="fewer rows"):
        assemble_as(VariableBlock(1, 64, offsets, pa.py_buffer(b"")), pa.string())


@pytest.mark.parametrize("data", [b"caf\xc3\xa9", b"plain", b""])
def test_assemble_valid_utf8_text(data: bytes) -> None:
    assert assemble_as(strings(data, b"x"), pa.string()).to_pylist() == [data.decode(), "x"]


@pytest.mark.parametrize("values", [(b"\xff",), (b"\xc3", b"\xa9"), (b"ok", b"\xed\xa0\x80")])
def test_assemble_invalid_utf8_text_is_refused(values: tuple[bytes, ...]) -> None:
    with pytest.raises(FormatError, match=r"UTF8|UTF-8"):
        assemble_as(strings(*values), pa.string())
    assert assemble_as(strings(*values), pa.binary()).to_pylist() == list(values)


def test_assemble_dictionaries_as_values_or_indices() -> None:
    block = DictionaryBlock(4, fixed([1, 0, 2, 1], "u1"), strings(b"a", b"b"))
    assert assemble_as(block, pa.string()).to_pylist() == ["a", None, "b", "a"]
    kept = DictionaryBlock(3, fixed([1, 0, 1], "u4"), strings(b"a", b"b"))
    array = assemble_as(kept, pa.dictionary(pa.int16(), pa.string()))
    assert array.type == pa.dictionary(pa.int16(), pa.string())
    assert array.to_pylist() == ["b", "a", "b"]


def test_a_null_item_makes_null_rows() -> None:
    items = NullableBlock(2, pa.py_buffer(b"\x01"), strings(b"a", b""))
    block = DictionaryBlock(3, fixed([1, 0, 1], "u1"), items)
    array = assemble_as(block, pa.dictionary(pa.int8(), pa.string()))
    assert array.to_pylist() == [None, "a", None]


@pytest.mark.parametrize("data_type", [pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_an_index_beyond_the_dictionary(data_type: pa.DataType) -> None:
    block = DictionaryBlock(1, fixed([3], "u8"), strings(b"a", b"b"))
    with pytest.raises(FormatError, match="index 3"):
        assemble_as(block, data_type)


def test_lists_and_nulls() -> None:
    offsets = pa.py_buffer(np.array([0, 2, 2, 3], np.int32))
    block = ListBlock(3, 32, offsets, pa.py_buffer(b"\x05"), fixed([1, 2, 3], "i4"))
    for data_type in (pa.list_(pa.int32()), pa.large_list(pa.int32())):
        array = assemble_as(block, data_type)
        array.validate(full=True)
        assert array.to_pylist() == [[1, 2], None, [3]]
    assert assemble_as(AllNullBlock(2), pa.list_(pa.int32())).to_pylist() == [None, None]


def test_assemble_wide_values_as_fixed_size_lists() -> None:
    block = FixedWidthBlock(2, 32, pa.py_buffer(np.array([1, 2, 3, 4], np.int16)))
    assert assemble_as(block, pa.list_(pa.int16(), 2)).to_pylist() == [[1, 2], [3, 4]]


def test_assemble_restores_extension_types() -> None:
    tensor = pa.fixed_shape_tensor(pa.float32(), (2,))
    fields = schema_from_arrow(pa.schema([("u", pa.uuid()), ("t", tensor)])).fields
    uuids = assemble(FixedWidthBlock(1, 128, pa.py_buffer(bytes(16))), fields[0])
    assert uuids.type == pa.uuid()
    items = fixed([0, 0], "f4")
    assert assemble(FixedSizeListBlock(1, 2, items), fields[1]).type == tensor


def test_extension_types_inside_structs() -> None:
    array = pa.array([{"u": bytes(16)}, None], pa.struct([("u", pa.binary(16))]))
    wanted = pa.struct([("u", pa.uuid())])
    again = retype(array, wanted)
    again.validate(full=True)
    assert again.type == wanted
    assert again.is_null().to_pylist() == [False, True]
