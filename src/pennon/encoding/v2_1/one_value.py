"""A test whether all values of a page are the same, and that value.

Most pages are told apart by their first values.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.kernels.rle_encode import count_runs
from pennon.encoding.v2_1.values import WORD_TYPES, FixedValues, StringValues, Values

_FIRST = 32


@dataclass(frozen=True, slots=True)
class OneValue:
    """The buffers of an Arrow array of one value, without its validity."""

    buffers: tuple[bytes, ...]


def find_one_value(array: pa.Array, leaf: Values) -> OneValue | None:
    """Return the value that all have that are not NULL; None if they differ.

    ``leaf`` are the values of ``array``, of which some are not NULL.
    """
    if isinstance(leaf, StringValues):
        return _one_string(array, leaf)
    if not isinstance(leaf, FixedValues):
        return None
    if leaf.bits == 0:
        return OneValue((b"",))
    if leaf.bits == 1:
        return _one_bit(array)
    if leaf.bits in WORD_TYPES:
        words = leaf.words
        is_one = words[0] == words[-1] and count_runs(words) == 1
        return OneValue((words[:1].tobytes(),)) if is_one else None
    return _one_row(array, leaf)


def _one_bit(array: pa.BooleanArray) -> OneValue | None:
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    true = array.true_count
    if 0 < true < len(array) - array.null_count:
        return None
    return OneValue((bytes([true > 0]),))


def _one_row(array: pa.Array, leaf: FixedValues) -> OneValue | None:
    rows = leaf.data.reshape(leaf.count, -1)
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        places = np.flatnonzero(valid)
        if (rows[places[:_FIRST]] != rows[places[0]]).any():
            return None
        rows = rows[valid]
    is_one = (rows[:_FIRST] == rows[0]).all() and (rows == rows[0]).all()
    return OneValue((rows[0].tobytes(),)) if is_one else None


def _one_string(array: pa.Array, leaf: StringValues) -> OneValue | None:
    if _differ(_sizes(array[:_FIRST], leaf.offsets[: _FIRST + 1])):
        return None
    sizes = _sizes(array, leaf.offsets)
    if _differ(sizes):
        return None
    size = int(sizes[0])
    data: Bytes = leaf.data[leaf.offsets[0] : leaf.offsets[-1]]
    value = data[:size]
    if size:
        rows = data.reshape(-1, size)
        if (rows[:_FIRST] != value).any() or (rows != value).any():
            return None
    offsets = np.array([0, size], f"<i{leaf.width}").tobytes()
    return OneValue((offsets, value.tobytes()))


def _sizes(array: pa.Array, offsets: Int64Array) -> Int64Array:
    """Return the sizes of the byte strings that are not NULL."""
    sizes = np.diff(offsets)
    return sizes[array.is_valid().to_numpy(zero_copy_only=False)] if array.null_count else sizes


def _differ(sizes: Int64Array) -> bool:
    return bool((sizes != sizes[0]).any()) if len(sizes) else False
