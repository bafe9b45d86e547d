"""Pages with a dictionary beside their values: values that come again and again are indices into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.memory import allocate, call_arrow
from pennon.encoding.block import AllNullBlock, Block, FixedWidthBlock, VariableBlock
from pennon.encoding.kernels.dictionaries import look_up
from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.concat_pages import join_strings
from pennon.encoding.v2_1.page import PageValues, visible_levels
from pennon.errors import FormatError

_WIDTHS: Final = (8, 16, 32, 64)
_STRINGS: Final = 0
"""The kind of items that have no width."""

Nulls: TypeAlias = Callable[[], "npt.NDArray[np.bool_] | None"]
"""Finds out which values are NULL; None if none is."""


def decode_dictionary(
    values: Block, items: pa.Array, validity: pa.Buffer | None, data_type: pa.DataType
) -> pa.Array:
    """Return items by their indices: a dictionary array if the type is one, else plain values.

    Raises FormatError if an index names no item.
    """
    indices = _indices(values)
    if indices is None:
        return pa.nulls(values.rows, data_type)
    _check_indices(indices, validity, len(items))
    keys = pa.Array.from_buffers(
        pa.from_numpy_dtype(indices.dtype), len(indices), [validity, pa.py_buffer(indices)]
    )
    if not pa.types.is_dictionary(data_type):
        return call_arrow("take", items, keys)
    try:
        keys = keys.cast(data_type.index_type)
    except pa.ArrowInvalid as error:
        raise FormatError(str(error)) from error
    return pa.DictionaryArray.from_arrays(keys, items, ordered=data_type.ordered, safe=False)


def join_dictionaries(
    page: PageValues, dictionaries: Sequence[Block], ends: Int64Array
) -> PageValues:
    """Return values of several pages, each with a dictionary, as if there were one or none.

    Those of page i are the indices up to ``ends[i]``; under NULLs they may be anything.  Numbers are looked up
    and have no dictionary any more, strings have one of all items.  Raises FormatError if an index names no item.
    """
    levels = page.levels

    def nulls() -> npt.NDArray[np.bool_] | None:
        return None if levels.definition is None else levels.definition[visible_levels(levels)] != 0

    return PageValues(*_joined(page.values, dictionaries, ends, nulls), levels)


def _joined(
    values: Block, dictionaries: Sequence[Block], ends: Int64Array, nulls: Nulls
) -> tuple[Block, Block | None]:
    indices = _indices(values)
    if isinstance(dictionaries[0], VariableBlock):
        whole = join_strings(dictionaries)
        if indices is None or whole is None:
            return values, whole
        counts = [each.rows for each in dictionaries]
        indices = _checked(indices, counts, ends, nulls)
        firsts = np.cumsum([0, *counts[:-1]], dtype=np.uint32)
        found = indices.astype(np.uint32) + np.repeat(firsts, np.diff(ends, prepend=0))
        return FixedWidthBlock(len(found), 32, pa.py_buffer(found)), whole
    items = [_items(each) for each in dictionaries]
    if indices is None:
        data = pa.py_buffer(bytes(values.rows * items[0].itemsize))
        return FixedWidthBlock(values.rows, 8 * items[0].itemsize, data), None
    return _look_up(indices, items, ends, nulls), None


def _checked(
    indices: np.ndarray,
    counts: Sequence[int],
    ends: Int64Array,
    nulls: Nulls,
) -> np.ndarray:
    """Return indices into dictionaries of so many items; those under NULLs that name none are 0."""
    most = np.repeat(counts, np.diff(ends, prepend=0))
    outside = indices >= most
    if not outside.any():
        return indices
    are_null = nulls()
    named = outside if are_null is None else outside & ~are_null
    if named.any():
        message = (
            f"dictionary index {indices[named][0]}, where the greatest can be {most[named][0] - 1}"
        )
        raise FormatError(message)
    return np.where(outside, 0, indices)


def _look_up(
    indices: np.ndarray,
    items: Sequence[npt.NDArray[np.unsignedinteger[Any]]],
    ends: Int64Array,
    nulls: Nulls,
) -> FixedWidthBlock:
    """Return the items that indices of several pages name, each in the dictionary of its page."""
    found = allocate(len(indices), items[0].dtype)
    if look_up(list(items), ends, indices, found):
        _checked(indices, [len(each) for each in items], ends, nulls)
    return FixedWidthBlock(len(found), 8 * found.itemsize, pa.py_buffer(found))


def kind_of_items(encoding: e.Encoding) -> int | None:
    """Return what the items of dictionaries that are joined have in common: their bits, or that they are strings.

    None for items that `join_dictionaries` does not take.
    """
    if isinstance(encoding, e.General):
        return kind_of_items(encoding.values)
    if isinstance(encoding, e.Variable):
        return _STRINGS
    if isinstance(encoding, e.Flat | e.InlineBitpacking | e.OutOfLineBitpacking):
        return encoding.bits_per_value if encoding.bits_per_value in _WIDTHS else None
    return None


def is_of_numbers(encoding: e.Encoding) -> bool:
    """Return whether the items of a dictionary are numbers that `join_dictionaries` takes."""
    return kind_of_items(encoding) not in (None, _STRINGS)


def can_join_dictionary(dictionary: Block | None) -> bool:
    """Return whether `join_dictionaries` takes a dictionary, or there is none."""
    if dictionary is None or isinstance(dictionary, VariableBlock):
        return True
    return isinstance(dictionary, FixedWidthBlock) and dictionary.bits_per_value in _WIDTHS


def are_like(dictionaries: Sequence[Block | None]) -> bool:
    """Return whether there is no dictionary, or `join_dictionaries` takes them together."""
    if all(each is None for each in dictionaries):
        return True
    if not all(each is not None and can_join_dictionary(each) for each in dictionaries):
        return False
    widths = {
        each.bits_per_value if isinstance(each, FixedWidthBlock) else 0 for each in dictionaries
    }
    return len(widths) == 1


def _items(dictionary: Block) -> npt.NDArray[np.unsignedinteger[Any]]:
    if not isinstance(dictionary, FixedWidthBlock):
        message = f"a dictionary of {type(dictionary).__name__}"
        raise FormatError(message)
    return _numbers(dictionary, f"a dictionary of {dictionary.rows} items")


def _indices(values: Block) -> np.ndarray | None:
    """Return the indices; None if all of them are NULL."""
    if isinstance(values, AllNullBlock):
        return None
    if not isinstance(values, FixedWidthBlock) or values.bits_per_value not in _WIDTHS:
        message = f"indices into a dictionary stored as {type(values).__name__}"
        raise FormatError(message)
    return _numbers(values, f"{values.rows} indices")


def _numbers(block: FixedWidthBlock, what: str) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Return the numbers of a block.  Raises FormatError if ``what`` it holds is cut off."""
    width = block.bits_per_value // 8
    if block.data.size < block.rows * width:
        message = f"{what} in {block.data.size} bytes"
        raise FormatError(message)
    return np.frombuffer(block.data, f"<u{width}", block.rows)


def _check_indices(indices: np.ndarray, validity: pa.Buffer | None, count: int) -> None:
    """Raise FormatError if an index names no item; those under NULLs may be anything."""
    if not len(indices) or int(indices.max()) < count:
        return
    if validity is not None:
        valid = np.unpackbits(
            np.frombuffer(validity, np.uint8), count=len(indices), bitorder="little"
        )
        named = indices[valid.view(np.bool_)]
        if not len(named) or int(named.max()) < count:
            return
    message = f"dictionary index {indices.max()}, where the greatest can be {count - 1}"
    raise FormatError(message)
