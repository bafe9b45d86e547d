"""Exact batches: record batches whose buffers hold their own rows and nothing else.

A batch that is a slice of what was decoded is legal Arrow, but its buffers are those of the whole:
``pickle`` and ``get_total_buffer_size`` count all of it, ``.values`` of vectors shows the vectors of
other rows, and a batch that is kept keeps all of it in memory.  So batches that leave a scan are cut:

::

    decoded     |.........|.........|.........|      64 MiB, say
    slice                 |.........|                offset and length in buffers of 64 MiB
    exact                 |---------|                offset 0, buffers of its own size

To cut costs no copy of values: pointers move.  Values are copied where the batch would otherwise
keep more than `SHARE` times its own bytes in memory.  What lies in memory maps is not copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.core.memory import Streaming
from pennon.encoding.kernels.exact_arrays import ExactColumns

SHARE: Final = 2
"""A batch keeps no more than so many times its own bytes in memory, or its values are copied."""

_NULLS, _FIXED, _BITS, _BYTES, _LISTS, _FIXED_LIST, _STRUCT, _OTHER = 0, 1, 2, 3, 5, 7, 8, 9


class ExactBatches:
    """Cuts batches of one schema."""

    def __init__(self, schema: pa.Schema) -> None:
        """Describe the types of the schema to the kernel, once for all batches."""
        self.schema = schema
        self._types = schema.types
        layouts = [_layout_of(kind) for kind in self._types]
        self.layout: Int64Array = np.array(list(chain.from_iterable(layouts)), np.int64)
        self.others = {n for n, layout in enumerate(layouts) if layout[0] == _OTHER}
        self._dictionaries = [n for n, kind in enumerate(self._types) if t.is_dictionary(kind)]

    def cut(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch of the schema, at offset 0 in buffers of their own size."""
        if not batch.num_columns:
            return batch
        held = batch.get_total_buffer_size()
        for number in self._dictionaries:  # each batch has the whole dictionary
            held -= batch.column(number).dictionary.get_total_buffer_size()
        columns = ExactColumns(batch.num_columns)
        batch._export_to_c(columns.address)  # noqa: SLF001 - the C data interface has no other name
        columns.cut(self.layout, held, SHARE)
        read: Any = pa.Array._import_from_c  # noqa: SLF001 - as above
        pairs = zip(columns.addresses(), self._types, strict=True)
        if not self.others:
            arrays = [read(address, kind) for address, kind in pairs]
        else:
            arrays = [
                batch.column(number) if number in self.others else read(address, kind)
                for number, (address, kind) in enumerate(pairs)
            ]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def exact_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches, each at offset 0 in buffers of its own size; see the module."""
    exact: ExactBatches | None = None
    for batch in batches:
        if exact is None or not batch.schema.equals(exact.schema):
            exact = ExactBatches(batch.schema)
        with Streaming():
            found = exact.cut(batch)
        del batch  # it may hold more, and is not needed while the caller works
        yield found
        del found


def exact_parts(batch: pa.RecordBatch, counts: Sequence[int]) -> list[pa.RecordBatch]:
    """Return the rows of a batch as batches of so many rows each, in buffers of their own size; see the module."""
    exact, ends = ExactBatches(batch.schema), list(accumulate(counts))
    return [
        exact.cut(batch.slice(end - count, count)) for end, count in zip(ends, counts, strict=True)
    ]


def exact_table(table: pa.Table) -> pa.Table:
    """Return a table whose chunks begin at offset 0 in buffers of their own size; see the module."""
    if not table.num_columns:  # it still knows how many rows it has
        return table
    return pa.Table.from_batches(exact_batches(table.to_batches()), table.schema)


def exact_array(array: pa.Array) -> pa.Array:
    """Return an array at offset 0 in buffers of its own size; see the module."""
    batch = pa.RecordBatch.from_arrays([array], names=[""])
    return ExactBatches(batch.schema).cut(batch).column(0)


def _layout_of(kind: pa.DataType) -> list[int]:
    """Return what the kernel is told of a type; types that it does not know come out as they are."""
    described = list(_described(kind))
    return [_OTHER, 0, 0] if _OTHER in described[::3] else described


def _described(kind: pa.DataType) -> Iterator[int]:
    """Yield three numbers for a type and each of its children; see `ExactColumns.cut`."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if t.is_dictionary(kind):
        kind = kind.index_type
    children = [kind.field(number).type for number in range(kind.num_fields)]
    code, parameter = _code(kind)
    yield from (code, parameter, len(children))
    for child in children:
        yield from _described(child)


def _code(kind: pa.DataType) -> tuple[int, int]:
    if t.is_null(kind):
        return _NULLS, 0
    if t.is_boolean(kind):
        return _BITS, 0
    if t.is_string(kind) or t.is_binary(kind):
        return _BYTES, 0
    if t.is_large_string(kind) or t.is_large_binary(kind):
        return _BYTES + 1, 0
    if t.is_list(kind) or t.is_map(kind):
        return _LISTS, 0
    if t.is_large_list(kind):
        return _LISTS + 1, 0
    if t.is_fixed_size_list(kind):
        return _FIXED_LIST, kind.list_size
    if t.is_struct(kind):
        return _STRUCT, 0
    if kind.num_fields or t.is_string_view(kind) or t.is_binary_view(kind):
        return _OTHER, 0
    return _FIXED, kind.bit_width // 8
