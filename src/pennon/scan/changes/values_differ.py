"""Two columns of one type, compared row by row: as they are stored, so that NaN equals itself and 0.0 is not -0.0."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_WORDS: Final = {pa.float16(): pa.int16(), pa.float32(): pa.int32(), pa.float64(): pa.int64()}
_BLOCK: Final = 1024


def differing_rows(one: pa.ChunkedArray, other: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return which rows of two columns of one length have other values."""
    first, second = one.combine_chunks(), other.combine_chunks()
    if first.type != second.type:
        second = second.cast(first.type)
    if pa.types.is_nested(first.type) or pa.types.is_dictionary(first.type):
        return _differing_blocks(first, second)
    word = _WORDS.get(first.type)
    if word is not None:
        first, second = first.view(word), second.view(word)
    differ = pc.fill_null(pc.not_equal(first, second), False)  # noqa: FBT003 - Arrow's own order
    nulls = pc.xor(first.is_null(), second.is_null())
    found: npt.NDArray[np.bool_] = pc.or_(differ, nulls).to_numpy(zero_copy_only=False)
    return found


def _differing_blocks(one: pa.Array[Any], other: pa.Array[Any]) -> npt.NDArray[np.bool_]:
    """Return the same for values that Arrow compares only as a whole: halves of what differs, down to rows."""
    found = np.zeros(len(one), np.bool_)
    todo = [(at, min(at + _BLOCK, len(one))) for at in range(0, len(one), _BLOCK)]
    while todo:
        start, end = todo.pop()
        if one.slice(start, end - start).equals(other.slice(start, end - start)):
            continue
        if end - start == 1:
            found[start] = True
            continue
        middle = (start + end) // 2
        todo += [(start, middle), (middle, end)]
    return found
