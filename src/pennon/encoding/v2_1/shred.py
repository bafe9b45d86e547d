"""From a nested array to the levels and the values of one leaf.

    [[1, NULL], NULL, []]      rep          1  0  1  1
                               definition   0  1  2  3       layers: NULLABLE_ITEM,
                               values       1  ?                     NULL_AND_EMPTY_LIST

Layers are added from the outermost inwards, with marks in place of definition levels (see
`pennon.encoding.kernels.shred`), because only at the end is known which of them are needed: a layer
without NULLs has no level for them, even if its type could have.

Source: seed 002 (repetition and definition levels, 0 is the innermost); ledger F-66 to F-70.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import arrow_offsets, as_bytes, with_validity
from pennon.encoding.kernels.shred import add_items, add_lists, number_levels
from pennon.encoding.selection import keep
from pennon.encoding.v2_1.layouts import Layer, Layers, max_visible
from pennon.encoding.v2_1.leaf_values import without_null_items
from pennon.encoding.v2_1.page import LevelArray, Levels

_CLOSED: Final = 0x8000
_LIST_LAYER: Final = {
    (False, False): Layer.ALL_VALID_LIST,
    (True, False): Layer.NULLABLE_LIST,
    (False, True): Layer.EMPTYABLE_LIST,
    (True, True): Layer.NULL_AND_EMPTY_LIST,
}


_NULLABLE: Final = {
    Layer.ALL_VALID_ITEM: Layer.NULLABLE_ITEM,
    Layer.NULLABLE_ITEM: Layer.NULLABLE_ITEM,
    **dict.fromkeys(_LIST_LAYER.values(), Layer.NULL_AND_EMPTY_LIST),
}
"""The same layers with levels for all that may be, whether it is in the page or not."""


_MARKS: Final[Mapping[Layer, tuple[int, ...]]] = {
    Layer.ALL_VALID_ITEM: (),
    Layer.NULLABLE_ITEM: (0,),
    Layer.ALL_VALID_LIST: (),
    Layer.NULLABLE_LIST: (1,),
    Layer.EMPTYABLE_LIST: (0,),
    Layer.NULL_AND_EMPTY_LIST: (0, 1),
}
"""Which marks of a layer become levels: a list has one for empty and one for NULL."""


@dataclass(frozen=True, slots=True, eq=False)
class Shredded:
    """The levels of a leaf, and its values: one for each visible level, NULL or not."""

    levels: Levels
    values: pa.Array


def shred(array: pa.Array, depth: int, *, is_whole: bool = False) -> Shredded:
    """Take ``depth`` layers of structs (with one field each) and lists off an array.

    ``is_whole`` tells that there are no other arrays of the column in the file.
    """
    work = _Shredder(len(array), _count_lists(array.type, depth))
    for _ in range(depth):
        if pa.types.is_struct(array.type):
            array = work.add_struct(array)
        elif pa.types.is_fixed_size_list(array.type):
            array = work.add_fixed_size_list(array)
        else:
            array = work.add_list(array)
    if isinstance(array, pa.DictionaryArray):
        array = without_null_items(array)
    work.add_validity(array)
    levels = work.levels(is_whole=is_whole)
    return Shredded(levels, _with_outer_nulls(array, levels))


def _with_outer_nulls(values: pa.Array, levels: Levels) -> pa.Array:
    """Return values that are NULL also where a struct around them is."""
    if levels.definition is None or Layer.NULLABLE_ITEM not in levels.layers[1:]:
        return values
    valid = levels.definition[levels.definition <= max_visible(levels.layers)] == 0
    if int(valid.sum()) + values.null_count == len(values):
        return values
    return with_validity(values, valid)


def _count_lists(kind: pa.DataType, depth: int) -> int:
    lists = 0
    for _ in range(depth):
        lists += not (pa.types.is_struct(kind) or pa.types.is_fixed_size_list(kind))
        kind = kind.field(0).type
    return lists


class _Shredder:
    """The levels so far, and the layers with their marks, from the outermost to the innermost."""

    def __init__(self, rows: int, lists: int) -> None:
        self._rows = rows
        self._lists_left = lists
        self._rep: LevelArray | None = None
        self._definition: LevelArray | None = None
        self._layers: list[tuple[Layer, int]] = []
        """Each layer, and the first of its marks."""
        self._next_mark = 1
        self._in_null = False
        """Whether some slots of the next layer lie in structs that are NULL."""
        self._has_fixed_size_lists = False

    def add_validity(self, array: pa.Array) -> None:
        """Add the layer of values or structs that may be NULL."""
        nulls = 0
        if array.null_count:
            definition = self._open_definition(len(array))
            validity = _validity(array)
            nulls = add_items(definition, validity, _bit_offset(array), self._next_mark)
        # What lies in a NULL struct counts as NULL: pylance reads a leaf without what is around it.
        self._in_null = self._in_null or nulls > 0
        layer = Layer.NULLABLE_ITEM if self._in_null else Layer.ALL_VALID_ITEM
        self._add_layer(layer, marks=1)

    def add_struct(self, array: pa.StructArray) -> pa.Array:
        """Add a layer of structs; return their one field."""
        self.add_validity(array)
        return array.field(0)

    def add_fixed_size_list(self, array: pa.FixedSizeListArray) -> pa.Array:
        """Add a layer of fixed-size lists outside of any list; return the items of all.

        The items of a list that is NULL are there, and each of them says so.
        """
        self.add_validity(array)
        self._has_fixed_size_lists = True
        size = array.type.list_size
        self._definition = np.repeat(self._open_definition(len(array)), size)
        return array.values.slice(array.offset * size, len(array) * size)

    def add_list(self, array: pa.ListArray) -> pa.Array:
        """Add a layer of lists; return the items of those that are valid."""
        offsets = arrow_offsets(array)
        before = self._open_definition(len(array))
        rep = np.zeros(len(before), np.uint16) if self._rep is None else self._rep
        null_mark, empty_mark = self._next_mark + 1, self._next_mark
        self._rep, self._definition, nulls, empty, hidden = add_lists(
            rep,
            before,
            offsets,
            _validity(array) if array.null_count else None,
            _bit_offset(array),
            self._lists_left,
            null_mark,
            empty_mark,
        )
        self._lists_left -= 1
        # Lists in a NULL struct count as NULL: readers take what is outside a layer of lists without
        # NULL and empty ones for NULL items.
        has_nulls = nulls > 0 or self._in_null
        self._in_null = False
        self._add_layer(_LIST_LAYER[has_nulls, empty > 0], marks=2)
        items = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
        return _without_hidden(items, array, before, offsets) if hidden else items

    def levels(self, *, is_whole: bool) -> Levels:
        """Return the levels, with as few numbers as there are reasons for a NULL."""
        inwards = [layer for layer, _ in self._layers]
        if self._has_fixed_size_lists and not is_whole:
            # pylance 14 counts items wrongly where only some pages have levels for a layer.
            inwards = [_NULLABLE[layer] for layer in inwards]
        if not any(layer.levels for layer in inwards):
            return Levels(self._rep, None, tuple(reversed(inwards)))
        # Old readers (pylance 1.0.4) lose rows where other layers have levels and a list has none.
        inwards = [_with_levels(layer) for layer in inwards]
        layers: Layers = tuple(reversed(inwards))
        firsts = [first for _, first in self._layers]
        marks = [
            first + mark
            for layer, first in zip(inwards, firsts, strict=True)
            for mark in _MARKS[layer]
        ]
        assert self._definition is not None
        numbers = np.zeros(self._next_mark, np.uint16)
        numbers[marks] = np.arange(len(marks), 0, -1)
        number_levels(self._definition, numbers)  # which is ours, and asked for once
        return Levels(self._rep, self._definition, layers)

    def _open_definition(self, slots: int) -> LevelArray:
        if self._definition is None:
            self._definition = np.zeros(slots, np.uint16)
        return self._definition

    def _add_layer(self, layer: Layer, marks: int) -> None:
        """Note a layer, which has so many marks, needed or not."""
        self._layers.append((layer, self._next_mark))
        self._next_mark += marks


def _with_levels(layer: Layer) -> Layer:
    return Layer.EMPTYABLE_LIST if layer is Layer.ALL_VALID_LIST else layer


def _validity(array: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return the validity bitmap of an array with NULLs; `_bit_offset` is where it begins."""
    buffer = array.buffers()[0]
    if buffer is None:  # an array of the type null
        return np.zeros((len(array) + 7) // 8, np.uint8)
    return as_bytes(buffer)


def _bit_offset(array: pa.Array) -> int:
    return 0 if array.buffers()[0] is None else array.offset


def _without_hidden(
    items: pa.Array, array: pa.ListArray, before: LevelArray, offsets: np.ndarray
) -> pa.Array:
    """Return the items of lists that are valid and not within something that is NULL."""
    shown = before[before & _CLOSED == 0] == 0
    shown &= array.is_valid().to_numpy(zero_copy_only=False)
    kept = np.repeat(shown, np.diff(offsets))
    return keep(items, pa.array(kept))
