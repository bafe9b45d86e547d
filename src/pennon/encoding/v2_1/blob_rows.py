"""Pages of descriptions of blobs of version 2: packed rows in a full-zip page.

::

    kind u8 | position u64 | size u64 | blob_id u32 | u32 bytes of blob_uri | blob_uri

Blobs of kind 0 lie in the file itself, each at a multiple of 64 bytes; where all others lie was settled
before.  A NULL is a level without a row.

Source: ledger F-90, F-401.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.arrow_buffers import Bytes, arrow_offsets, as_bytes
from pennon.encoding.v2_1.constant_page import encode_null_page
from pennon.encoding.v2_1.encodings import Flat, PackedField, Variable, VariablePackedStruct
from pennon.encoding.v2_1.full_zip import encode_full_zip
from pennon.encoding.v2_1.page import EncodedPage
from pennon.encoding.v2_1.page_rules import RULES_OF_2_2
from pennon.encoding.v2_1.shred import shred
from pennon.encoding.v2_1.values import Single
from pennon.schema.blob import DESCRIPTION_V2
from pennon.schema.types import arrow_type

DESCRIBED: Final = pa.struct([pa.field(name, arrow_type(kind)) for name, kind in DESCRIPTION_V2])
_HEAD: Final = np.dtype(
    {
        "names": ["kind", "position", "size", "blob_id", "uri_bytes"],
        "formats": ["u1", "<u8", "<u8", "<u4", "<u4"],
        "offsets": [0, 1, 9, 17, 21],
        "itemsize": 25,
    }
)
_SIZE_BYTES: Final = 4
_ALIGNMENT: Final = 64
_PADDING: Final = [bytes(-length % _ALIGNMENT) for length in range(_ALIGNMENT)]
_NOTHING: Final = pa.py_buffer(b"")
_SHORT_BYTES: Final = 1024
_SHORT_ROWS: Final = 1024
"""So many short blobs are written at once: a write costs, however little it is."""
_ENCODING: Final = VariablePackedStruct(
    (
        *(PackedField(Flat(bits), bits, None) for bits in (8, 64, 64, 32)),
        PackedField(Variable(Flat(32)), None, 8 * _SIZE_BYTES),
    )
)


def write_inline_blobs(array: pa.StructArray, write: Callable[[pa.Buffer], int]) -> pa.StructArray:
    """Write the blobs that lie in the file, and return the descriptions of all.

    ``array`` has the parts of a description and, for blobs of kind 0, their bytes (``data``).
    """
    parts = [array.field(number) for number in range(DESCRIBED.num_fields)]
    kinds = parts[0].fill_null(0).to_numpy()
    positions = parts[1].fill_null(0).to_numpy().copy()
    sizes = parts[2].fill_null(0).to_numpy().copy()
    data = array.field(DESCRIBED.num_fields)
    offsets, values = arrow_offsets(data).astype(np.int64), data.buffers()[2]
    inline = array.is_valid().to_numpy(zero_copy_only=False) & (kinds == 0)
    lengths = np.diff(offsets)
    sizes[inline] = lengths[inline]
    for rows in _groups(np.flatnonzero(inline), lengths):
        starts = offsets[rows]
        if len(rows) == 1:
            filled = lengths[rows[0]] > 0
            one = values.slice(int(starts[0]), int(lengths[rows[0]])) if filled else _NOTHING
            positions[rows] = write(one)
            continue
        padded, at = _side_by_side(values, starts, lengths[rows])
        positions[rows] = write(padded) + at
    columns = [pa.array(kinds), pa.array(positions), pa.array(sizes), *parts[3:]]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(columns, fields=list(DESCRIBED), mask=mask)


def _groups(rows: Int64Array, lengths: Int64Array) -> Iterator[Int64Array]:
    """Yield neighbours that are short together, and others one by one."""
    is_short = lengths[rows] <= _SHORT_BYTES
    borders = np.flatnonzero(np.diff(is_short.astype(np.int8))) + 1
    for run in np.split(rows, borders):
        step = _SHORT_ROWS if len(run) and lengths[run[0]] <= _SHORT_BYTES else 1
        for start in range(0, len(run), step):
            yield run[start : start + step]


def _side_by_side(
    values: pa.Buffer | None, starts: Int64Array, lengths: Int64Array
) -> tuple[pa.Buffer, Int64Array]:
    """Return blobs in one buffer, each at a multiple of 64 bytes, and where each is."""
    view = memoryview(values or b"")
    parts: list[memoryview | bytes] = []
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        parts += (view[start : start + length], _PADDING[length % _ALIGNMENT])
    wide = (lengths + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
    return pa.py_buffer(b"".join(parts)), np.cumsum(wide) - wide


def encode_blob_rows(array: pa.Array, depth: int) -> EncodedPage:
    """Encode a page of descriptions, which lie under ``depth`` layers of structs and lists."""
    shredded = shred(array, depth)
    values, levels = shredded.values, shredded.levels
    if values.null_count == len(values):
        return encode_null_page(levels, RULES_OF_2_2)
    data, offsets = _rows(values)
    return encode_full_zip(levels, Single(_ENCODING, data, None, offsets, _SIZE_BYTES))


def _rows(values: pa.StructArray) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """Return the rows of all descriptions, and where each begins; that of a NULL has no bytes."""
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    uris = values.field(4)
    uri_offsets = arrow_offsets(uris).astype(np.int64)
    shown = valid & uris.is_valid().to_numpy(zero_copy_only=False)
    uri_bytes = np.where(shown, np.diff(uri_offsets), 0)
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.where(valid, _HEAD.itemsize + uri_bytes, 0), out=offsets[1:])
    heads = np.zeros(len(values), _HEAD)
    for number, name in enumerate(("kind", "position", "size", "blob_id")):
        heads[name] = values.field(number).fill_null(0).to_numpy()
    heads["uri_bytes"] = uri_bytes
    heads = heads[valid]
    if not uri_bytes.any():
        return heads.view(np.uint8), offsets
    data = np.empty(int(offsets[-1]), np.uint8)
    at = offsets[:-1][valid]
    data[at[:, None] + np.arange(_HEAD.itemsize)] = heads.view(np.uint8).reshape(len(heads), -1)
    text = as_bytes(uris.buffers()[2])
    for row in np.flatnonzero(uri_bytes):
        end, first = int(offsets[row + 1]), int(uri_offsets[row])
        data[end - uri_bytes[row] : end] = text[first : first + uri_bytes[row]]
    return data, offsets
