"""Binary, Dictionary, FSST and List: bytes of the spec, the contract, and encoders."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.read_protocol import run
from pennon.encoding.rows import Rows
from pennon.encoding.symbol_table import parse_symbol_table
from pennon.encoding.v2_0.binary import encode_binary
from pennon.encoding.v2_0.choose import encode_values
from pennon.encoding.v2_0.codecs import CODECS
from pennon.encoding.v2_0.dictionary import encode_dictionary, encode_text_dictionary
from pennon.encoding.v2_0.encodings import (
    Binary,
    BufferRef,
    Compression,
    Dictionary,
    Flat,
    Fsst,
    List,
    NoNulls,
)
from pennon.encoding.v2_0.list import decode_list, encode_list, part_lists
from pennon.errors import FormatError
from pennon.testing.encoding_contract import PageInMemory
from tests.unit.encoding.contract import check_contract

AB_NULL_C = Binary(NoNulls(Flat(64, BufferRef(0))), Flat(8, BufferRef(1)), 4)


def bytes_of(encoded: Any) -> Any:
    return [buffer.to_pybytes() for buffer in encoded.buffers]


def u64(*values: Any) -> Any:
    return struct.pack(f"<{len(values)}Q", *values)


def test_binary_is_the_example_of_the_format() -> None:
    encoded = encode_binary(pa.array(["ab", None, "c"]))
    assert encoded.encoding == AB_NULL_C
    assert bytes_of(encoded) == [u64(2, 6, 3), b"abc"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("null_every", [0, 3, 1])
def test_binary_encoding_of_strings_and_nulls(kind: pa.DataType, null_every: int) -> None:
    for count in (0, 1, 9, 1025):
        values = [f"v{i}" * (i % 4) for i in range(count)]
        rows = [None if null_every and i % null_every == 0 else v for i, v in enumerate(values)]
        array = pa.array(rows, pa.string()).cast(kind)
        encoded = encode_binary(array)
        check_contract(encoded.encoding, bytes_of(encoded), array, rounds=2)


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_binary_indices_of_any_width(bits: int) -> None:
    encoding = Binary(NoNulls(Flat(bits, BufferRef(0))), Flat(8, BufferRef(1)), 4)
    indices = np.array([2, 6, 3], f"u{bits // 8}").tobytes()
    check_contract(encoding, [indices, b"abc"], pa.array(["ab", None, "c"]), rounds=2)


@pytest.mark.parametrize("scheme", ["zstd", "lz4"])
def test_compressed_binary_contract(scheme: str) -> None:
    array = pa.array([None if i % 5 == 0 else f"text {i % 7} " * 3 for i in range(300)])
    encoded = encode_binary(array, 0, Compression(scheme))
    assert encoded.buffers[1].size < 2000
    check_contract(encoded.encoding, bytes_of(encoded), array, rounds=2)


def test_binary_of_one_row_reads_two_offsets_and_its_bytes() -> None:
    page = PageInMemory.build(AB_NULL_C, 3, [u64(2, 6, 3), b"abc"])
    steps = CODECS.decode(AB_NULL_C, page.buffers, Rows.between(2, 3))
    (offsets,) = next(steps)
    first = page.buffers.page[0].position
    assert (offsets.position - first, offsets.size_bytes) == (8, 16)
    (data,) = steps.send([pa.py_buffer(u64(6, 3))])
    assert (data.position - page.buffers.page[1].position, data.size_bytes) == (2, 1)


def test_equal_strings_make_equal_bytes() -> None:
    """What lies in front of a slice, or under a NULL, does not show."""
    hidden = pa.Array.from_buffers(
        pa.string(),
        4,
        [
            pa.py_buffer(b"\x0d"),
            pa.py_buffer(np.array([0, 1, 4, 5, 7], np.int32)),
            pa.py_buffer(b"xJUNKyz"),
        ],
    )
    assert hidden.to_pylist() == ["x", None, "K", "yz"]
    plain = pa.array(["?", "x", None, "K", "yz"]).slice(1)
    assert bytes_of(encode_binary(hidden)) == bytes_of(encode_binary(plain))
    assert encode_binary(hidden).encoding == encode_binary(plain).encoding


def test_text_dictionary_keeps_index_0_for_null() -> None:
    encoded = encode_text_dictionary(pa.array(["b", None, "a", "b"] * 25))
    assert encoded.encoding == Dictionary(
        NoNulls(Flat(8, BufferRef(0))),
        Binary(NoNulls(Flat(64, BufferRef(1))), Flat(8, BufferRef(2)), 3),
        2,
    )
    assert bytes_of(encoded) == [bytes([1, 0, 2, 1]) * 25, u64(1, 2), b"ba"]


@pytest.mark.parametrize("rows", [100, 1025])
def test_text_dictionary_contract(rows: Any) -> None:
    array = pa.array([None if i % 6 == 0 else f"v{i % 99}" for i in range(rows)])
    encoded = encode_text_dictionary(array)
    check_contract(encoded.encoding, bytes_of(encoded), array, rounds=2)


def test_text_dictionary_is_for_few_values_and_many_rows() -> None:
    assert encode_text_dictionary(pa.array(["a"] * 99)) is None
    assert encode_text_dictionary(pa.array([str(i % 100) for i in range(1000)])) is None
    late = ["a"] * 900 + [str(i) for i in range(100)]
    assert encode_text_dictionary(pa.array(late)) is None
    assert encode_text_dictionary(pa.array([str(i % 99) for i in range(1000)])) is not None


def test_dictionary_array_gets_an_item_for_null() -> None:
    encoded = encode_dictionary(pa.array(["a", None, "b"]).dictionary_encode(), 0, encode_values)
    assert encoded.encoding.num_dictionary_items == 3
    assert bytes_of(encoded) == [struct.pack("<3i", 0, 2, 1), u64(1, 2, 5), b"ab"]


@pytest.mark.parametrize("index", [pa.int8(), pa.uint16(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("value", [pa.string(), pa.int64(), pa.large_binary()])
def test_dictionary_array_contract(index: Any, value: Any) -> None:
    values = pa.array(["1", "22", "333"]).cast(value)
    rows = [None if i % 4 == 0 else i % 3 for i in range(70)]
    array = pa.DictionaryArray.from_arrays(pa.array(rows, index), values)
    encoded = encode_dictionary(array.slice(3), 0, encode_values)
    check_contract(encoded.encoding, bytes_of(encoded), array.slice(3), rounds=2)


def symbol_table(*symbols: Any, used: Any = True) -> Any:
    head = 0x46535354 << 32 | used << 24 | len(symbols)
    body = b"".join(symbol.ljust(8, b"\0") for symbol in symbols)
    return (u64(head) + body + bytes(map(len, symbols))).ljust(2312, b"\0")


def test_fsst_encoding_of_annotated_bytes() -> None:
    """Codes 0 "the ", 1 "q"; 255 escapes."""
    encoding = Fsst(
        Binary(NoNulls(Flat(64, BufferRef(0))), Flat(8, BufferRef(1)), 6),
        symbol_table(b"the ", b"q"),
    )
    buffers = [u64(2, 2 + 6, 5, 5), b"\x00\x01\x01\xff\x78"]
    expected = pa.array(["the q", None, "qx", ""])
    check_contract(encoding, buffers, expected, rounds=2)


def test_fsst_page_without_compression_has_plain_bytes() -> None:
    encoding = Fsst(AB_NULL_C, symbol_table(used=False))
    check_contract(encoding, [u64(2, 6, 3), b"abc"], pa.array(["ab", None, "c"]), rounds=2)


@pytest.mark.parametrize(
    "table", [b"", b"\0" * 2312, symbol_table(b"a")[:12], symbol_table(*[b"a"] * 200)[:100]]
)
def test_broken_symbol_tables_are_format_errors(table: pa.Table) -> None:
    with pytest.raises(FormatError):
        parse_symbol_table(table)


LISTS = [["A", "B"], None, [], ["C", "D", "E"]]


def test_list_is_the_example_of_the_format() -> None:
    lengths, items = part_lists(pa.array(LISTS))
    encoded = encode_list(lengths)
    assert encoded.encoding == List(NoNulls(Flat(64, BufferRef(0))), 6, 5)
    assert bytes_of(encoded) == [u64(2, 8, 2, 5)]
    assert items.to_pylist() == ["A", "B", "C", "D", "E"]


@pytest.mark.parametrize("adjustment", [6, 7, 1000])
def test_lists_decode_with_any_adjustment(adjustment: int) -> None:
    encoding = List(NoNulls(Flat(64, BufferRef(0))), adjustment, 5)
    page = PageInMemory.build(encoding, 4, [u64(2, 2 + adjustment, 2, 5)])

    def spans(rows: Any) -> Any:
        return run(decode_list(encoding, page.buffers, rows, CODECS), page.read)

    whole = spans(Rows.between(0, 4))
    assert np.frombuffer(whole.offsets, np.int32).tolist() == [0, 2, 2, 2, 5]
    assert whole.validity.to_pybytes() == bytes([0b11111101])
    part = spans(Rows.between(1, 4))
    assert np.frombuffer(part.offsets, np.int32).tolist() == [0, 0, 0, 3]
    assert part.contents.indices().tolist() == [2, 3, 4]
    some = spans(Rows.at(np.array([0, 3])))
    assert some.contents.indices().tolist() == [0, 1, 2, 3, 4]


def test_list_offsets_beyond_the_items_are_refused() -> None:
    encoding = List(NoNulls(Flat(64, BufferRef(0))), 6, 4)
    page = PageInMemory.build(encoding, 4, [u64(2, 8, 2, 5)])
    with pytest.raises(FormatError, match="beyond"):
        run(decode_list(encoding, page.buffers, Rows.between(0, 4), CODECS), page.read)


def test_list_parts_skip_items_under_null_lists() -> None:
    offsets = pa.array([0, 2, 4, 5], pa.int32())
    array = pa.ListArray.from_arrays(
        offsets, pa.array([1, 2, 3, 4, 5]), mask=pa.array([False, True, False])
    )
    lengths, items = part_lists(array)
    assert (lengths.to_pylist(), items.to_pylist()) == ([2, None, 1], [1, 2, 5])
    lengths, items = part_lists(array.slice(1))
    assert (lengths.to_pylist(), items.to_pylist()) == ([None, 1], [5])
