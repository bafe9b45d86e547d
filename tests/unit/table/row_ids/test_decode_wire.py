"""Row-id sequences: all segments, those of pylance, and damage."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from pennon.errors import FormatError
from pennon.io import MemoryStore, open_store
from pennon.proto import rowids_pb2
from pennon.table.fragment import ExternalFile
from pennon.table.row_ids.decode_wire import (
    decode_row_ids,
    decode_row_versions,
    read_sequence,
    row_id_bounds,
)
from pennon.table.row_ids.encode_wire import encode_one_version, encode_row_id_range
from pennon.table.versions import read_manifest

Segment = rowids_pb2.U64Segment
Array = rowids_pb2.EncodedU64Array
U16, U32, U64 = Array.U16Array, Array.U32Array, Array.U64Array


def sequence(*segments: rowids_pb2.U64Segment) -> bytes:
    return rowids_pb2.RowIdSequence(segments=segments).SerializeToString()


def u16(base: int, *offsets: int) -> rowids_pb2.EncodedU64Array:
    return Array(u16_array=U16(base=base, offsets=np.array(offsets, "<u2").tobytes()))


def u32(base: int, *offsets: int) -> rowids_pb2.EncodedU64Array:
    return Array(u32_array=U32(base=base, offsets=np.array(offsets, "<u4").tobytes()))


def u64(*values: int) -> rowids_pb2.EncodedU64Array:
    return Array(u64_array=U64(values=np.array(values, "<u8").tobytes()))


def a_range(start: int, end: int) -> rowids_pb2.U64Segment:
    return Segment(range=Segment.Range(start=start, end=end))


def holes(start: int, end: int, missing: rowids_pb2.EncodedU64Array) -> rowids_pb2.U64Segment:
    return Segment(range_with_holes=Segment.RangeWithHoles(start=start, end=end, holes=missing))


def bits(start: int, end: int, *octets: int) -> rowids_pb2.U64Segment:
    segment = Segment.RangeWithBitmap(start=start, end=end, bitmap=bytes(octets))
    return Segment(range_with_bitmap=segment)


GOOD = [
    (a_range(5, 9), [5, 6, 7, 8]),
    (a_range(2**64 - 3, 2**64 - 1), [2**64 - 3, 2**64 - 2]),
    (a_range(7, 7), []),
    (holes(100, 106, u64(103, 101)), [100, 102, 104, 105]),
    (holes(100, 103, u16(100)), [100, 101, 102]),
    # Bit i, least significant first: 0b00000101 holds the first and the third id.
    (bits(10, 18, 0b00000101), [10, 12]),
    (bits(10, 20, 0b10000000, 0b00000010), [17, 19]),
    (bits(10, 12, 0b11111111), [10, 11]),
    (Segment(sorted_array=u16(1000, 1, 5, 9)), [1001, 1005, 1009]),
    (Segment(array=u32(2**40, 70000, 2)), [2**40 + 70000, 2**40 + 2]),
    (Segment(array=u64(2**64 - 1, 0)), [2**64 - 1, 0]),
]


@pytest.mark.parametrize(("segment", "ids"), GOOD)
def test_every_row_id_segment_is_decoded(segment: rowids_pb2.U64Segment, ids: list[int]) -> None:
    assert decode_row_ids(sequence(segment), len(ids)).tolist() == ids


def test_row_id_segments_decode_in_sequence() -> None:
    data = sequence(*(segment for segment, _ in GOOD))
    ids = [row_id for _, more in GOOD for row_id in more]
    assert decode_row_ids(data, len(ids)).tolist() == ids


@pytest.mark.parametrize(("segment", "ids"), GOOD)
def test_bounds_of_row_ids_hold_every_id(segment: rowids_pb2.U64Segment, ids: list[int]) -> None:
    low, high = row_id_bounds(sequence(segment))
    assert all(low <= row_id <= high for row_id in ids)
    assert (low <= high) is bool(ids)


def test_bounds_of_row_ids_span_all_segments_that_have_ids() -> None:
    assert row_id_bounds(sequence(a_range(90, 95), a_range(7, 7), a_range(5, 9))) == (5, 94)
    assert row_id_bounds(sequence(a_range(7, 7))) == row_id_bounds(sequence()) == (1, 0)


@pytest.mark.parametrize(
    "segment",
    [
        a_range(0, 2**63),
        a_range(9, 5),
        holes(0, 2**63, u64(1)),
        holes(0, 5, u64(7)),
        holes(10, 15, u64(9)),
        bits(0, 2**40, 1, 2),
        bits(9, 5),
        bits(0, 24, 255, 255, 255),
        Segment(sorted_array=u16(0, 5, 1)),
        Segment(array=u64(*range(30))),
        Segment(array=Array(u16_array=U16(offsets=b"123"))),
        Segment(array=Array(u32_array=U32(offsets=b"12345"))),
        Segment(array=Array(u64_array=U64(values=b"123"))),
        Segment(array=u16(2**64 - 1, 1)),
        Segment(array=Array()),
        Segment(),
    ],
)
def test_damaged_row_id_segments_are_refused(segment: rowids_pb2.U64Segment) -> None:
    with pytest.raises(FormatError):
        decode_row_ids(sequence(segment), 10)


@pytest.mark.parametrize("rows", [3, 5])
def test_row_id_count_mismatch_is_refused(rows: int) -> None:
    with pytest.raises(FormatError):
        decode_row_ids(encode_row_id_range(0, 4), rows)


def test_invalid_row_id_message_is_refused() -> None:
    with pytest.raises(FormatError, match="no RowIdSequence"):
        decode_row_ids(b"\xff\xff", 1)


def test_row_id_ranges_and_row_versions_round_trip() -> None:
    assert decode_row_ids(encode_row_id_range(40, 3), 3).tolist() == [40, 41, 42]
    assert decode_row_ids(encode_row_id_range(40, 0), 0).tolist() == []
    assert decode_row_versions(encode_one_version(7, 3), 3).tolist() == [7, 7, 7]


def test_sequences_in_a_file_of_their_own() -> None:
    store = MemoryStore("external")
    data = encode_row_id_range(0, 4)
    store.put("ids/x", b"abc" + data + b"def")
    assert read_sequence(store, ExternalFile("ids/x", 3, len(data))) == data
    assert read_sequence(store, data) == data
    with pytest.raises(FormatError, match="ends before"):
        read_sequence(store, ExternalFile("ids/x", 3, 2**40))
    with pytest.raises(FormatError):
        read_sequence(store, ExternalFile("../x", 0, 1))


def test_the_oracles_ids(tmp_path: Path) -> None:
    """Appends give ranges; update and compaction give the other segments."""
    root = str(tmp_path / "t.lance")
    rows = pa.table({"a": range(1000)})
    lance.write_dataset(rows, root, data_storage_version="2.0", enable_stable_row_ids=True)
    table = lance.write_dataset(rows, root, mode="append")
    table.delete("a % 7 = 3")
    table.update({"a": "a + 10000"}, where="a % 11 = 5")
    table.optimize.compact_files()
    table = lance.dataset(root)
    want = table.to_table(columns=[], with_row_id=True)["_rowid"].to_pylist()
    found = []
    store = open_store(root)
    for fragment in read_manifest(store).fragments:
        assert fragment.row_ids is not None
        assert fragment.physical_rows is not None
        assert fragment.deletion_file is None
        data = read_sequence(store, fragment.row_ids)
        found += decode_row_ids(data, fragment.physical_rows).tolist()
        assert fragment.created_at_versions is not None
        versions = read_sequence(store, fragment.created_at_versions)
        assert set(decode_row_versions(versions, fragment.physical_rows).tolist()) <= {1, 2}
    assert found == want
