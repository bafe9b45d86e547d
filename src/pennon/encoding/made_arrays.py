"""Arrow arrays made of buffers with the interpreter's lock held.

`pa.Array.from_buffers` lets go of the lock while it compares the sizes of the buffers.  Where many threads wait for the
lock, that takes longer than to read a few rows.  So the sizes are compared here, and the array is made as if it had been
pickled; buffers that do not suffice go to `from_buffers`, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import unpack_from
from typing import Any, Final

import pyarrow as pa

_FIXED: Final = frozenset(
    kind.id
    for kind in (
        *(pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32()),
        *(pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.date32()),
        *(pa.date64(), pa.time32("s"), pa.time64("us"), pa.timestamp("us"), pa.duration("us")),
        *(pa.decimal128(1), pa.decimal256(1), pa.binary(1)),
    )
)
"""Types of one buffer of values."""
OFFSET_BYTES: Final = {
    **{kind.id: 4 for kind in (pa.string(), pa.binary())},
    **{kind.id: 8 for kind in (pa.large_string(), pa.large_binary())},
}
"""Types of byte strings, by the bytes of an offset."""


def _restorer() -> Callable[[Any], pa.Array[Any]] | None:
    """Return what makes an array of a type, its rows and buffers, as pickle does; None if this pyarrow does it otherwise."""
    words = pa.py_buffer(b"pickled.")  # `pa.array` would import pandas
    sample = pa.Array.from_buffers(pa.int64(), 1, [None, words])
    try:
        restore, (parts,) = sample.__reduce__()
        kind, rows, _, offset, _, children, dictionary = parts
        is_known = (kind, rows, offset, list(children), dictionary) == (pa.int64(), 1, 0, [], None)
        made: pa.Array[Any] = restore((kind, 1, 0, 0, [None, words], [], None))
        return restore if is_known and made.equals(sample) else None
    except (TypeError, ValueError):
        return None


_restore: Final = _restorer()


def fixed_array(
    kind: pa.DataType, rows: int, bits: int, validity: pa.Buffer | None, values: pa.Buffer
) -> pa.Array[Any]:
    """Return an array of values of so many bits each."""
    buffers = [validity, values]
    if _restore is None or rows <= 0 or values.size * 8 < rows * bits:
        return _checked(kind, rows, buffers)
    if kind.id not in _FIXED or (validity is not None and validity.size * 8 < rows):
        return _checked(kind, rows, buffers)
    return _restore((kind, rows, 0 if validity is None else -1, 0, buffers, (), None))


def string_array(
    kind: pa.DataType,
    rows: int,
    validity: pa.Buffer | None,
    offsets: pa.Buffer,
    data: pa.Buffer,
) -> pa.Array[Any]:
    """Return an array of byte strings; of their offsets the first and the last are looked at."""
    buffers, offset_bytes = [validity, offsets, data], OFFSET_BYTES[kind.id]
    if _restore is None or rows <= 0 or offsets.size < (rows + 1) * offset_bytes:
        return _checked(kind, rows, buffers)
    word = "i" if offset_bytes == 4 else "q"
    (first,), (last,) = unpack_from(word, offsets), unpack_from(word, offsets, rows * offset_bytes)
    if not 0 <= first <= last <= data.size or (validity is not None and validity.size * 8 < rows):
        return _checked(kind, rows, buffers)
    return _restore((kind, rows, 0 if validity is None else -1, 0, buffers, (), None))


def fixed_list_array(
    kind: pa.DataType, rows: int, validity: pa.Buffer | None, items: pa.Array[Any]
) -> pa.Array[Any]:
    """Return an array of lists of one size; items that are lists themselves, or extensions, are checked by Arrow."""
    is_enough = len(items) >= rows * kind.list_size and items.type.equals(kind.value_type)
    if _restore is None or rows <= 0 or not is_enough or items.type.num_fields:
        return _checked(kind, rows, [validity], [items])
    if validity is not None and validity.size * 8 < rows:
        return _checked(kind, rows, [validity], [items])
    (parts,) = items.__reduce__()[1]
    return _restore((kind, rows, 0 if validity is None else -1, 0, [validity], [parts], None))


def _checked(
    kind: pa.DataType,
    rows: int,
    buffers: Sequence[pa.Buffer | None],
    children: Sequence[pa.Array[Any]] = (),
) -> pa.Array[Any]:
    array: pa.Array[Any] = pa.Array.from_buffers(kind, rows, list(buffers), children=list(children))
    return array
