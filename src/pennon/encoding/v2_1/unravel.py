"""Levels become validity bitmaps and offsets, layer by layer from the values outwards.

Every entry of the levels is a value, or stands for a NULL or empty list that has none.  Its
definition level says what is NULL or empty there, 0 being the innermost::

    [{x: 1}, NULL, {x: NULL}, {x: 2}]         layers: NULLABLE_ITEM (x), NULLABLE_ITEM (the struct)
    definition  0     2      1       0        1: x is NULL, 2: the struct is

Its repetition level says how many layers of lists begin with it, 0 being that it goes on::

    [[1, 2], [], [3]], [[4]]                  layers: ALL_VALID_ITEM, EMPTYABLE_LIST, ALL_VALID_LIST
    values      1  2  -  3  4
    repetition  2  0  1  1  2                 (the empty list has definition level 1)

A layer of lists takes one off all repetition levels, and drops the entries that go on: what is left
has one entry for each list, and is the same puzzle with one layer less.

Source: `protos/pennon/proto/encodings_v2_1.proto`; ledger F-62, F-66 to F-72.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import takewhile
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.kernels.levels import every_nth, lists_of, validity_of
from pennon.encoding.v2_1.layouts import Layer, Layers
from pennon.encoding.v2_1.page import NO_LEVELS, Levels
from pennon.errors import FormatError, TooLargeError

Offsets: TypeAlias = npt.NDArray[np.int32 | np.int64]


class Unraveler:
    """Takes levels apart, one layer a call, innermost first."""

    def __init__(self, levels: Levels) -> None:
        self._rep = levels.rep
        self._definition = levels.definition
        self._layers = levels.layers
        self._depth = 0
        self._lists = 0
        """How many layers of lists were taken off."""
        self._valid_to = 0
        """The highest definition level of the layers that were taken off."""
        self._lists_of_level = _lists_of_level(levels.layers)

    def check_done(self) -> None:
        """Raise FormatError unless all layers were taken off."""
        if self._depth != len(self._layers):
            message = f"a page of {len(self._layers)} layers in a column of {self._depth}"
            raise FormatError(message)

    def validity(self, slots: int) -> pa.Buffer | None:
        """Return the validity of a layer of values or structs, None if nothing is NULL.

        Raises FormatError unless it has ``slots`` slots.
        """
        layer = self._next()
        if layer.is_list:
            message = f"a layer of lists ({layer.name}) where the schema has none"
            raise FormatError(message)
        valid_to, self._valid_to = self._valid_to, self._valid_to + layer.levels
        if self._definition is None or not layer.has_nulls:
            return None
        bitmap, found, nulls = validity_of(self._definition, self._visible(), valid_to)
        if found != slots:
            message = f"levels of {found} values where there are {slots}"
            raise FormatError(message)
        return pa.py_buffer(bitmap) if nulls else None

    def offsets(self, items: int, *, wide: bool) -> tuple[Offsets, pa.Buffer | None]:
        """Return offsets (int64 if ``wide``, else int32) and validity of a layer of lists.

        Raises FormatError unless the lists have ``items`` items together.
        """
        layer = self._next()
        if not layer.is_list or self._rep is None:
            message = f"a layer {layer.name} without repetition where the schema has lists"
            raise FormatError(message)
        valid_to = self._valid_to
        self._valid_to += layer.levels
        self._lists += 1
        try:
            offsets, validity, self._rep, self._definition = lists_of(
                self._rep,
                self._definition,
                valid_to,
                self._valid_to if layer.has_empty else -1,
                self._valid_to + self._structs_around(),
                wide,
                is_outermost=self._depth == len(self._layers),
                has_nulls=layer.has_nulls,
            )
        except OverflowError as error:
            message = "more items than offsets of 32 bits can count; read fewer rows at once"
            raise TooLargeError(message) from error
        if offsets[-1] != items:
            message = f"lists of {offsets[-1]} items where there are {items}"
            raise FormatError(message)
        return offsets, None if validity is None else pa.py_buffer(validity)

    def every_nth(self, dimension: int) -> None:
        """Go on from the items of fixed-size lists to the lists, whose layer comes next."""
        if self._definition is None:
            if self._rep is not None:
                zeros = np.zeros(len(self._rep), np.uint16)
                self._rep, _ = every_nth(self._rep, zeros, self._visible(), dimension)
            return
        rep = NO_LEVELS if self._rep is None else self._rep
        self._rep, self._definition = every_nth(rep, self._definition, self._visible(), dimension)
        if not len(rep):
            self._rep = None

    def _next(self) -> Layer:
        if self._depth == len(self._layers):
            message = f"a page of {len(self._layers)} layers in a column of more"
            raise FormatError(message)
        self._depth += 1
        return self._layers[self._depth - 1]

    def _visible(self) -> Bytes:
        """Return, for each definition level, whether it has a slot in the layer at hand."""
        return (self._lists_of_level <= self._lists).astype(np.uint8)

    def _structs_around(self) -> int:
        """Return how many levels the structs have that are right around the lists at hand.

        A list in a NULL struct is NULL; in a list that is NULL or empty, it is not there at all.
        """
        around = takewhile(lambda layer: not layer.is_list, self._layers[self._depth :])
        return sum(layer.levels for layer in around)


@lru_cache(maxsize=256)
def _lists_of_level(layers: Layers) -> Int64Array:
    """Return, for each definition level, inside how many layers of lists it has no slot."""
    lists, found = 0, [0]
    for layer in layers:
        lists += layer.is_list
        found += [lists] * layer.levels
    return np.array(found, np.int64)
