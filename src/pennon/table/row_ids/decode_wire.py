"""Row-id sequences: the stable ids of a fragment's rows, in the order of the rows.

A sequence is a list of segments, each in the form that is smallest for it: a range, a range with
holes, a range with a bitmap (bit i, least significant first, tells whether start + i is there), a
sorted array, or an array.  Arrays are u16 or u32 offsets from a base, or plain u64.

How long a sequence may be is known before it is read (the fragment's physical rows), so a damaged
one cannot ask for memory.

Source: protos/rowids.proto, whose comment on the bit order is wrong (ledger F-45).
"""

from __future__ import annotations

import numpy as np

from pennon.core.byte_ranges import ByteRange
from pennon.errors import FormatError
from pennon.io.store import Opens
from pennon.proto import rowids_pb2
from pennon.table.fragment import ExternalFile, Sequence
from pennon.table.message_wire import parse_message
from pennon.table.row_ids import RowIds

_U64_MAX = (1 << 64) - 1


def read_sequence(store: Opens, sequence: Sequence) -> bytes:
    """Return the bytes of a sequence, wherever they lie."""
    if not isinstance(sequence, ExternalFile):
        return sequence
    reader = store.open(sequence.path)
    if sequence.offset + sequence.size_bytes > reader.size_bytes:
        message = f"{sequence.path} ends before the sequence at {sequence.offset}"
        raise FormatError(message)
    (buffer,) = reader.read([ByteRange(sequence.offset, sequence.size_bytes)])
    data: bytes = buffer.to_pybytes()
    return data


def decode_row_ids(data: bytes, num_rows: int) -> RowIds:
    """Return the ids of a fragment's ``num_rows`` physical rows; raises FormatError."""
    segments = parse_message(rowids_pb2.RowIdSequence, data).segments
    return _decode_segments([(segment, None) for segment in segments], num_rows)


def count_row_ids(data: bytes) -> int:
    """Return how many ids a sequence has; raises FormatError."""
    segments = parse_message(rowids_pb2.RowIdSequence, data).segments
    return sum(map(_count, segments))


def row_id_bounds(data: bytes) -> tuple[int, int]:
    """Return numbers that no id of a sequence is below or above, without a number a row; raises FormatError.

    A sequence without ids gives (1, 0).  The bounds of ranges with holes or bitmaps are those of their range.
    """
    segments = parse_message(rowids_pb2.RowIdSequence, data).segments
    bounds = [found for found in map(_bounds, segments) if found[0] <= found[1]]
    if not bounds:
        return 1, 0
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def decode_row_versions(data: bytes, num_rows: int) -> RowIds:
    """Return the table version of each of ``num_rows`` rows (created at, or last updated at).

    The runs of the sequence follow one another; a run's span says how many rows it covers.
    """
    runs = parse_message(rowids_pb2.RowDatasetVersionSequence, data).runs
    return _decode_segments([(run.span, run.version) for run in runs], num_rows)


def _decode_segments(
    segments: list[tuple[rowids_pb2.U64Segment, int | None]], num_rows: int
) -> RowIds:
    """Decode segments one after the other; a number beside one replaces all its values."""
    out = np.empty(0, np.uint64)
    parts = []
    left = num_rows
    for segment, instead in segments:
        values = _decode_segment(segment, left)
        left -= len(values)
        parts.append(values if instead is None else np.full(len(values), instead, np.uint64))
    if left:
        message = f"a sequence of {num_rows - left} values stands for {num_rows} rows"
        raise FormatError(message)
    return np.concatenate([out, *parts])


def _decode_segment(segment: rowids_pb2.U64Segment, limit: int) -> RowIds:
    match segment.WhichOneof("segment"):
        case "range":
            return _range(segment.range.start, segment.range.end, limit)
        case "range_with_holes":
            return _decode_holes(segment.range_with_holes, limit)
        case "range_with_bitmap":
            return _decode_bitmap(segment.range_with_bitmap, limit)
        case "sorted_array":
            return _decode_sorted(segment.sorted_array, limit)
        case "array":
            return _limited(_decode_array(segment.array), limit)
        case _:
            message = "a segment of a row-id sequence has no known form"
            raise FormatError(message)


def _count(segment: rowids_pb2.U64Segment) -> int:
    match segment.WhichOneof("segment"):
        case "range":
            return max(segment.range.end - segment.range.start, 0)
        case "range_with_holes":
            it = segment.range_with_holes
            return max(it.end - it.start - len(_decode_array(it.holes)), 0)
        case "range_with_bitmap":
            return int.from_bytes(segment.range_with_bitmap.bitmap).bit_count()
        case "sorted_array":
            return len(_decode_array(segment.sorted_array))
        case _:
            return len(_decode_array(segment.array))


def _bounds(segment: rowids_pb2.U64Segment) -> tuple[int, int]:
    match segment.WhichOneof("segment"):
        case "range":
            return segment.range.start, segment.range.end - 1
        case "range_with_holes":
            return segment.range_with_holes.start, segment.range_with_holes.end - 1
        case "range_with_bitmap":
            return segment.range_with_bitmap.start, segment.range_with_bitmap.end - 1
        case "sorted_array":
            values = _decode_array(segment.sorted_array)
        case _:
            values = _decode_array(segment.array)
    return (int(values.min()), int(values.max())) if len(values) else (1, 0)


def _range(start: int, end: int, limit: int) -> RowIds:
    """Return ``start .. end``, which must be no more than ``limit`` values."""
    if not start <= end <= start + limit:
        message = f"row ids {start}..{end} are not a range of at most {limit} rows"
        raise FormatError(message)
    return np.arange(end - start, dtype=np.uint64) + np.uint64(start)


def _decode_holes(segment: rowids_pb2.U64Segment.RangeWithHoles, limit: int) -> RowIds:
    holes = np.unique(_decode_array(segment.holes))
    values = _range(segment.start, segment.end, limit + len(holes))
    if len(holes) and not (segment.start <= int(holes[0]) and int(holes[-1]) < segment.end):
        message = f"a hole lies outside the row ids {segment.start}..{segment.end}"
        raise FormatError(message)
    return _limited(np.delete(values, (holes - np.uint64(segment.start)).astype(np.int64)), limit)


def _decode_bitmap(segment: rowids_pb2.U64Segment.RangeWithBitmap, limit: int) -> RowIds:
    length = segment.end - segment.start
    if not 0 <= length <= 8 * len(segment.bitmap):
        message = f"{len(segment.bitmap)} bytes of bitmap for {length} row ids"
        raise FormatError(message)
    packed = np.frombuffer(segment.bitmap, np.uint8)
    present = np.unpackbits(packed, count=length, bitorder="little")
    found = np.flatnonzero(present).astype(np.uint64)
    return _limited(found + np.uint64(segment.start), limit)


def _decode_sorted(array: rowids_pb2.EncodedU64Array, limit: int) -> RowIds:
    values = _limited(_decode_array(array), limit)
    if np.any(values[1:] < values[:-1]):
        message = "a sorted array of row ids is not sorted"
        raise FormatError(message)
    return values


def _decode_array(array: rowids_pb2.EncodedU64Array) -> RowIds:
    match array.WhichOneof("array"):
        case "u16_array":
            return _based(array.u16_array.base, array.u16_array.offsets, "<u2")
        case "u32_array":
            return _based(array.u32_array.base, array.u32_array.offsets, "<u4")
        case "u64_array":
            return _based(0, array.u64_array.values, "<u8")
        case _:
            message = "an array of row ids has no known width"
            raise FormatError(message)


def _based(base: int, data: bytes, width: str) -> RowIds:
    if len(data) % np.dtype(width).itemsize:
        message = f"{len(data)} bytes do not divide into values of {width} bytes"
        raise FormatError(message)
    offsets = np.frombuffer(data, width).astype(np.uint64)
    if len(offsets) and base + int(offsets.max()) > _U64_MAX:
        message = f"row ids from base {base} on pass 64 bits"
        raise FormatError(message)
    return offsets + np.uint64(base)


def _limited(values: RowIds, limit: int) -> RowIds:
    if len(values) > limit:
        message = f"{len(values)} row ids for {limit} rows"
        raise FormatError(message)
    return values
