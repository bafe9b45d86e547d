"""Row-id sequences: the stable ids of a fragment's rows, in the order of the rows.

A sequence is a list of segments, each in the form that is smallest for it: a range, a range with
holes, a range with a bitmap (bit i, least significant first, tells whether start + i is there), a
sorted array, or an array.  Arrays are u16 or u32 offsets from a base, or plain u64.

How long a sequence may be is known before it is read (the fragment's physical rows), so a damaged
one cannot ask for memory.

Source: protos/rowids.proto, whose comment on the bit order is wrong (ledger F-45).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.errors import FormatError
from pennon.io.store import Opens
from pennon.proto import rowids_pb2
from pennon.ranges import Extent
from pennon.table.manifest import ExternalFile, Sequence
from pennon.table.messages import parse_message, serialize_message

RowIds: TypeAlias = npt.NDArray[np.uint64]

_U64_MAX = (1 << 64) - 1
_LEAST_PIECE = 16
"""Ids that ascend for fewer rows than this, on average, are written as one array."""


def read_sequence(store: Opens, sequence: Sequence) -> bytes:
    """Return the bytes of a sequence, wherever they lie."""
    if not isinstance(sequence, ExternalFile):
        return sequence
    reader = store.open(sequence.path)
    if sequence.offset + sequence.size_bytes > reader.size_bytes:
        message = f"{sequence.path} ends before the sequence at {sequence.offset}"
        raise FormatError(message)
    (buffer,) = reader.read([Extent(sequence.offset, sequence.size_bytes)])
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


def decode_row_versions(data: bytes, num_rows: int) -> RowIds:
    """Return the table version of each of ``num_rows`` rows (created at, or last updated at).

    The runs of the sequence follow one another; a run's span says how many rows it covers.
    """
    runs = parse_message(rowids_pb2.RowDatasetVersionSequence, data).runs
    return _decode_segments([(run.span, run.version) for run in runs], num_rows)


def encode_row_id_range(first: int, num_rows: int) -> bytes:
    """Return the sequence of ids ``first, first + 1, ...``: that of appended rows."""
    message = rowids_pb2.RowIdSequence()
    segment = message.segments.add()
    segment.range.start, segment.range.end = first, first + num_rows
    return serialize_message(message)


def encode_one_version(version: int, num_rows: int) -> bytes:
    """Return the version sequence of rows that all have one version."""
    message = rowids_pb2.RowDatasetVersionSequence()
    run = message.runs.add()
    run.span.range.start, run.span.range.end = 0, num_rows
    run.version = version
    return serialize_message(message)


def encode_row_ids(ids: RowIds) -> bytes:
    """Return the sequence of any ids, in their order.

    It is cut where ids do not ascend, and each piece takes its smallest form, as Lance chooses it;
    ids in no order at all are one array.
    """
    message = rowids_pb2.RowIdSequence()
    values = np.ascontiguousarray(ids, np.uint64)
    cuts = np.flatnonzero(values[1:] <= values[:-1]) + 1
    if len(cuts) > len(values) // _LEAST_PIECE:
        message.segments.add().array.CopyFrom(_encode_array(values))
        return serialize_message(message)
    for piece in np.split(values, cuts) if len(values) else ():
        message.segments.append(_encode_ascending(piece))
    return serialize_message(message)


def encode_row_versions(versions: RowIds) -> bytes:
    """Return the version sequence of rows: a run for each stretch of rows of one version."""
    message = rowids_pb2.RowDatasetVersionSequence()
    starts = np.flatnonzero(np.diff(versions)) + 1
    edges = [0, *starts.tolist(), len(versions)] if len(versions) else [0]
    for start, end in pairwise(edges):
        run = message.runs.add(version=int(versions[start]))
        run.span.range.start, run.span.range.end = start, end
    return serialize_message(message)


def _encode_ascending(values: RowIds) -> rowids_pb2.U64Segment:
    """Return the smallest segment of ids that ascend."""
    segment = rowids_pb2.U64Segment()
    start, end = int(values[0]), int(values[-1]) + 1
    num_holes = end - start - len(values)
    sizes = (4 * num_holes, -(-(end - start) // 8), 2 * len(values))
    if not num_holes:
        segment.range.start, segment.range.end = start, end
    elif sizes[0] == min(sizes):
        present = _present(values, start, end)
        holes = np.flatnonzero(~present).astype(np.uint64) + np.uint64(start)
        segment.range_with_holes.start, segment.range_with_holes.end = start, end
        segment.range_with_holes.holes.CopyFrom(_encode_array(holes))
    elif sizes[1] == min(sizes):
        bits = np.packbits(_present(values, start, end), bitorder="little")
        segment.range_with_bitmap.start, segment.range_with_bitmap.end = start, end
        segment.range_with_bitmap.bitmap = bits.tobytes()
    else:
        segment.sorted_array.CopyFrom(_encode_array(values))
    return segment


def _present(values: RowIds, start: int, end: int) -> npt.NDArray[np.bool_]:
    present = np.zeros(end - start, np.bool_)
    present[(values - np.uint64(start)).astype(np.int64)] = True
    return present


def _encode_array(values: RowIds) -> rowids_pb2.EncodedU64Array:
    """Return an array of any values in the narrowest width."""
    array = rowids_pb2.EncodedU64Array()
    base = int(values.min()) if len(values) else 0
    span = int(values.max()) - base if len(values) else 0
    if span < 1 << 16:
        array.u16_array.base = base
        array.u16_array.offsets = (values - np.uint64(base)).astype("<u2").tobytes()
    elif span < 1 << 32:
        array.u32_array.base = base
        array.u32_array.offsets = (values - np.uint64(base)).astype("<u4").tobytes()
    else:
        array.u64_array.values = values.astype("<u8").tobytes()
    return array


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
        message = f"{len(data)} bytes are no whole number of {width} values"
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
