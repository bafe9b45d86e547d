"""Reading the statistics of version 0.1 as bounds of what a reader gets.

The statistics are of what was written, and that is not all held: where a page of numbers had NULLs,
anything may stand under them, so its bounds are of no use.  NULL text is held, but empty text is NULL
then, which its bounds count as a value.  And pylance takes for the greatest text that whose first 64
bytes are, of whole characters, which is not the greatest where the 64th byte is within one.

Only the columns asked for are read.  Fields that have no statistics, or statistics of another kind
than `pennon.file.v0_1.statistics` names, have no bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.byte_ranges import ByteRange
from pennon.core.units import FieldId
from pennon.encoding.read_protocol import Steps, together
from pennon.encoding.v0_1.pages import Pages
from pennon.encoding.v0_1.picks import Picks
from pennon.errors import FormatError
from pennon.file.container.field_bounds import FieldBounds
from pennon.file.container.opened_file import BoundsSteps
from pennon.file.v0_1.file import RowGroupFile
from pennon.file.v0_1.metadata import ENTRY_BYTES, parse_pages
from pennon.file.v0_1.reader import node_of
from pennon.file.v0_1.statistics import GREATEST, LEAST, NULL_COUNT
from pennon.file.v0_1.text_bounds import LEAST_CUT, cut_text, next_text
from pennon.schema.arrow import storage_field
from pennon.schema.field import Field

_TEXT = frozenset(("string", "large_string", "binary", "large_binary"))


def read_bounds(
    file: RowGroupFile,
    fields: Sequence[Field],
    _column_of: Mapping[FieldId, int],  # statistics go by the ids of fields
) -> BoundsSteps:
    """Return the steps that read the bounds of fields.  Raises FormatError if they are damaged."""
    statistics = file.metadata.statistics
    if statistics is None:
        return [None] * len(fields)
    by_name = {each.name: each for each in statistics.schema.fields}
    found = [by_name.get(str(each.id)) for each in fields]
    table = statistics.page_table
    readers = [_read(file, table, *both) for both in zip(fields, found, strict=True)]
    return (yield from together(readers))


def _read(
    file: RowGroupFile, table: int, of: Field, statistics: Field | None
) -> Steps[FieldBounds | None]:
    parts = _parts(of, statistics)
    if parts is None:
        return None
    extents = [_entry(table, part.id, file.source.size_bytes) for part in parts]
    buffers = yield from file.tail.read_extents(extents)
    pages = [parse_pages(buffer.to_pybytes(), file.source.size_bytes) for buffer in buffers]
    readers = [_read_part(file, *both) for both in zip(parts, pages, strict=True)]
    counts, low, high = yield from file.answered(together(readers))
    return _bounds(file, of, counts, low, high)


def _parts(of: Field, statistics: Field | None) -> list[Field] | None:
    """Return NULL count, least and greatest value of a field; None if they are not as they should be."""
    if statistics is None:
        return None
    children = {each.name: each for each in statistics.children}
    if not {NULL_COUNT, LEAST, GREATEST} <= children.keys():
        return None
    parts = [children[NULL_COUNT], children[LEAST], children[GREATEST]]
    kinds = [part.logical_type for part in parts]
    return parts if kinds == ["int64", of.logical_type, of.logical_type] else None


def _entry(table: int, number: int, file_bytes: int) -> ByteRange:
    extent = ByteRange(table + number * ENTRY_BYTES, ENTRY_BYTES)
    if number < 0 or extent.end > file_bytes:
        message = f"row {number} of the page table of statistics leaves the file"
        raise FormatError(message)
    return extent


def _read_part(file: RowGroupFile, part: Field, pages: Pages) -> Steps[pa.Array[Any]]:
    is_decimal = part.logical_type.startswith("decimal:128")
    words = replace(part, logical_type="fixed_size_binary:16") if is_decimal else part
    node = yield from node_of(file, words, {part.id: pages})
    zero = np.zeros(1, np.int64)
    picks = Picks.between(zero, zero, np.array([file.metadata.num_groups]))
    array = yield from node.read(picks)
    return _decimals(array, storage_field(part).type) if is_decimal else array


def _decimals(words: pa.Array[Any], data_type: pa.Decimal128Type) -> pa.Array[Any]:
    """Return decimals; bounds of no values are beyond any precision, and become NULL."""
    most = 10**data_type.precision
    numbers = (int.from_bytes(word, "little", signed=True) for word in words.to_pylist())
    within = np.array([-most < number < most for number in numbers], np.bool_)
    validity = pa.py_buffer(np.packbits(within, bitorder="little"))
    values = words.buffers()[1].slice(words.offset * 16)
    return pa.Array.from_buffers(data_type, len(words), [validity, values])


def _bounds(
    file: RowGroupFile, of: Field, counts: pa.Array[Any], low: pa.Array[Any], high: pa.Array[Any]
) -> FieldBounds:
    borders = file.metadata.borders
    if of.logical_type in _TEXT:
        high = _above_cuts(high) if of.logical_type in ("string", "large_string") else high
        return FieldBounds(borders, low, high, _text_nulls(of, counts, low, np.diff(borders)))
    is_held = pc.equal(counts, 0)
    low, high = _where(is_held, low), _where(is_held, high)
    kept = None if pa.types.is_floating(storage_field(of).type) else high
    return FieldBounds(borders, low, kept, pa.array(np.zeros(len(counts), np.int64)))


def _above_cuts(high: pa.Array[Any]) -> pa.Array[Any]:
    """Return bounds that stand above all texts that may have been cut to less than 64 bytes."""
    if not pc.any(pc.greater_equal(pc.binary_length(high), LEAST_CUT)).as_py():
        return high
    values = (None if value is None else value.encode() for value in high.to_pylist())
    return pa.array(
        [
            v if v is None or len(v) < LEAST_CUT else next_text(cut_text(v, LEAST_CUT))
            for v in values
        ],
        high.type,
    )


def _where(is_known: pa.Array[Any], bounds: pa.Array[Any]) -> pa.Array[Any]:
    return pc.if_else(is_known, bounds, pa.scalar(None, bounds.type))


def _text_nulls(
    of: Field, counts: pa.Array[Any], low: pa.Array[Any], rows: np.ndarray
) -> pa.Array[Any]:
    """Return how many values are read as NULL, NULL where that is not known.

    An empty value is one of them, and if there is any it is the least.
    """
    if not of.nullable:
        return pa.array(np.zeros(len(counts), np.int64))
    is_known = pc.or_(low.is_valid(), pc.equal(counts, pa.array(rows)))
    return _where(is_known, counts)
