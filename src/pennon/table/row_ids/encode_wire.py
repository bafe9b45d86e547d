"""Row ids and row versions to bytes; what the forms are is told in `pennon.table.row_ids.decode_wire`."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pennon.proto import rowids_pb2
from pennon.table.message_wire import serialize_message
from pennon.table.row_ids import RowIds

_LEAST_PIECE = 16
"""Ids that ascend for fewer rows than this, on average, are written as one array."""


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
