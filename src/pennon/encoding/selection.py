"""Some rows of an array, by a mask or by their numbers, also where Arrow gives wrong ones.

pyarrow 26 filters and takes a slice of fixed-size lists of fixed-size lists as if the inner lists began
at the first item of the whole array.  A copy that is no slice comes out right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.memory import call_arrow, current_pool
from pennon.core.units import KIB
from pennon.encoding.arrow_buffers import (
    Bytes,
    arrow_offsets,
    as_bytes,
    is_plain,
    items_of,
    values_of,
)
from pennon.encoding.kernels.order_rows import BitRows, FixedRows, StringRows
from pennon.encoding.made_arrays import (
    OFFSET_BYTES,
    fixed_array,
    fixed_list_array,
    string_array,
)

_FEW: Final = 4096
_LEAST_RUN: Final = 16
"""So few neighbours are copied sooner than they are recognised."""
_LARGE_BYTES: Final = 32 * KIB
"""To copy chunks of so many bytes into one takes longer than to tell a kernel where each lies."""
_NO_STRING: Final = np.zeros(8, np.uint8)
"""The offsets of no strings."""
_PLAIN: Final[Mapping[int, npt.DTypeLike]] = {
    kind.id: np.dtype(f"i{kind.bit_width // 8}")
    for kind in (
        *(pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64()),
        *(pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64()),
        *(pa.time32("s"), pa.time64("us"), pa.timestamp("us"), pa.duration("us")),
    )
}
"""Types whose values are words, whatever their unit, by what is copied of each."""


def keep(array: pa.Array, mask: pa.Array) -> pa.Array:
    """Return the values for which ``mask`` is true."""
    return call_arrow("filter", _copied(array), mask)


def take(array: pa.Array, indices: pa.Array) -> pa.Array:
    """Return the values of these numbers."""
    return call_arrow("take", _copied(array), indices)


def take_few(array: pa.Array, numbers: Int64Array) -> pa.Array | None:
    """Return values by their numbers; None where they are many, or other ones than plain numbers that are there.

    NumPy copies a thousand of those before Arrow has found out how.
    """
    kind = _PLAIN.get(array.type.id)
    if kind is None or not 0 < len(numbers) <= _FEW or array.null_count:
        return None
    values = np.frombuffer(array.buffers()[1], kind, array.offset + len(array))
    return _over(array.type, values[array.offset :][numbers])


def in_order(chunks: Sequence[pa.Array], order: Int64Array) -> pa.Array:
    """Return the values of these numbers as one array; they count through all chunks, and must all be there."""
    few = take_few(chunks[0], order) if len(chunks) == 1 else None
    if few is not None:
        return few
    if len(order) <= _FEW or (len(chunks) > 1 and chunks[0].nbytes >= _LARGE_BYTES):
        return in_orders(chunks, [order])[0]  # few: Arrow would let go of the interpreter's lock
    whole = _joined(chunks)
    few = take_few(whole, order)
    return _taken(whole, order) if few is None else few


def in_orders(chunks: Sequence[pa.Array], orders: Sequence[Int64Array]) -> list[pa.Array]:
    """Return what `in_order` does for each of several orders, in buffers of their own sizes.

    Numbers, lists of as many numbers each, and byte strings are copied once, out of the chunks, or not at all:
    neighbours of one chunk share its memory.  No two of the arrays share a row's.  Chunks of other values are put
    together first.
    """
    rows = _PlainRows.of(chunks)
    if rows is not None:
        return [rows.put(order) for order in orders]
    whole = _joined(chunks)
    return [_taken(whole, order) for order in orders]


def _joined(chunks: Sequence[pa.Array]) -> pa.Array:
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def _taken(array: pa.Array, order: Int64Array) -> pa.Array:
    return take(array, _over(pa.int64(), np.ascontiguousarray(order)))


class _PlainRows:
    """The rows of chunks of numbers, of lists of as many numbers each, or of byte strings."""

    def __init__(
        self,
        kind: pa.DataType,
        validity: BitRows | None,
        values: FixedRows | StringRows,
        chunks: Sequence[pa.Array],
    ) -> None:
        self._kind = kind
        self._validity = validity
        self._values = values
        self._chunks = chunks
        self._shared: list[range] = []

    @classmethod
    def of(cls, chunks: Sequence[pa.Array]) -> Self | None:
        """Return the rows of chunks of one type; None if they have other values, or items that are NULL."""
        kind = chunks[0].type
        values = _strings(chunks) if kind.id in OFFSET_BYTES else _fixed(chunks)
        return None if values is None else cls(kind, _validity(chunks), values, chunks)

    def put(self, order: Int64Array) -> pa.Array:
        """Return the values of these numbers, in buffers of their own sizes."""
        order, kind = np.ascontiguousarray(order), self._kind
        validity = None if self._validity is None else pa.py_buffer(self._validity.put(order))
        run = self._run(order)
        if isinstance(self._values, StringRows):
            parts = self._values.put(order) if run is None else _strings_of(run)
            offsets, data = map(pa.py_buffer, parts)
            return string_array(kind, len(order), validity, offsets, data)
        values = pa.py_buffer(self._values.put(order) if run is None else _values_of(run))
        if not pa.types.is_fixed_size_list(kind):
            return fixed_array(kind, len(order), kind.bit_width, validity, values)
        item, count = kind.value_type, len(order) * kind.list_size
        items = fixed_array(item, count, item.bit_width, None, values)
        return fixed_list_array(kind, len(order), validity, items)

    def _run(self, order: Int64Array) -> pa.Array | None:
        """Return the slice of a chunk that is these rows, the first time that one of them is asked for.

        None if they are few, or not neighbours of one chunk.
        """
        count = len(order)
        if count < _LEAST_RUN or order[-1] - order[0] != count - 1 or (np.diff(order) != 1).any():
            return None
        rows = range(int(order[0]), int(order[-1]) + 1)
        if any(rows.start < each.stop and each.start < rows.stop for each in self._shared):
            return None
        start = 0
        for chunk in self._chunks:
            if start <= rows.start and rows.stop <= start + len(chunk):
                self._shared.append(rows)
                return chunk.slice(rows.start - start, count)
            start += len(chunk)
        return None


def _values_of(run: pa.Array) -> Bytes:
    """Return the bytes of numbers, or of lists of as many numbers each, where they lie."""
    if pa.types.is_fixed_size_list(run.type):
        size = run.type.list_size
        run = run.values.slice(run.offset * size, len(run) * size)
    width = run.type.bit_width // 8
    return as_bytes(run.buffers()[1])[run.offset * width :][: len(run) * width]


def _strings_of(run: pa.Array) -> tuple[npt.NDArray[Any], Bytes]:
    """Return the offsets of byte strings, from 0 on, and their bytes where they lie."""
    ends = arrow_offsets(run)
    return ends - ends[0], as_bytes(run.buffers()[2])[ends[0] : ends[-1]]


def _validity(chunks: Sequence[pa.Array]) -> BitRows | None:
    """Return which rows are there; None if all are."""
    bits = [chunk.buffers()[0] if chunk.null_count else None for chunk in chunks]
    if not any(bits):
        return None
    firsts = np.array([chunk.offset for chunk in chunks], np.int64)
    rows = np.array([len(chunk) for chunk in chunks], np.int64)
    return BitRows([None if each is None else as_bytes(each) for each in bits], firsts, rows)


def _strings(chunks: Sequence[pa.Array]) -> StringRows:
    width, offsets, sources = OFFSET_BYTES[chunks[0].type.id], [], []
    for chunk in chunks:
        _, ends, data = chunk.buffers()
        size, first = (len(chunk) + 1) * width, chunk.offset * width
        offsets.append(np.frombuffer(ends, np.uint8, size, first) if ends else _NO_STRING[:width])
        sources.append(as_bytes(data))
    return StringRows(sources, offsets, width)


def _fixed(chunks: Sequence[pa.Array]) -> FixedRows | None:
    """Return values of whole bytes; None if they are others, or lists with an item that is NULL."""
    kind = chunks[0].type
    is_list = pa.types.is_fixed_size_list(kind)
    item = kind.value_type if is_list else kind
    if not (is_plain(item) or pa.types.is_decimal(item)):
        return None
    width = item.bit_width // 8 * (kind.list_size if is_list else 1)
    if not width:
        return None
    items = [items_of(chunk) for chunk in chunks] if is_list else chunks
    if is_list and any(each.null_count for each in items):
        return None
    return FixedRows([as_bytes(values_of(each)) for each in items], width)


def _over(kind: pa.DataType, values: Any) -> pa.Array:
    return fixed_array(kind, len(values), 8 * values.itemsize, None, pa.py_buffer(values))


def keep_rows(batch: pa.RecordBatch, mask: pa.Array) -> pa.RecordBatch:
    """Return the rows for which ``mask`` is true."""
    if not any(map(_is_misread, batch.schema.types)):
        return batch.filter(mask)
    arrays = [_copied(array) for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema).filter(mask)


def _copied(array: pa.Array) -> pa.Array:
    if not _is_misread(array.type):
        return array
    copied: pa.Array[Any] = pa.concat_arrays([array, array.slice(0, 0)], current_pool())
    return copied


def _is_misread(kind: pa.DataType) -> bool:
    """Tell whether there are fixed-size lists right in fixed-size lists."""
    if not kind.num_fields:
        return False
    if pa.types.is_fixed_size_list(kind) and pa.types.is_fixed_size_list(kind.value_type):
        return True
    return any(_is_misread(kind.field(number).type) for number in range(kind.num_fields))
