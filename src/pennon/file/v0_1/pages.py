"""From the arrays of a batch to the pages of version 0.1, of many row groups at once.

Each field gives its parts (`pennon.encoding.v0_1.parts`) in the order in which the file has them:

    ====================  ============================================  =======================
    field                 parts                                         the page is
    ====================  ============================================  =======================
    numbers, booleans     values                                        the values
    fixed-size list       values of all items                           the values
    text, bytes           bytes, positions                              the positions
    dictionary            indices                                       the indices
    list                  offsets, then the parts of the items          the offsets
    struct                the parts of its fields                       none
    null                  none                                          an empty place
    ====================  ============================================  =======================

What this version cannot hold is written as pylance writes it: a NULL number is what lies under
it, a NULL list an empty one.  `pennon.file.v0_1.losses` counts that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.encoding.v0_1.binary import encode_binary
from pennon.encoding.v0_1.list import encode_lists
from pennon.encoding.v0_1.parts import Part, Slices
from pennon.encoding.v0_1.plain import encode_bits, encode_fixed_width
from pennon.errors import UnsupportedError
from pennon.file.container.arrays import check_array, child_array
from pennon.schema.field import Field

Indices: TypeAlias = Callable[[Field, pa.DictionaryArray, str], pa.Array]
"""Returns the indices of a dictionary array in the dictionary that the file has."""

Look: TypeAlias = Callable[[Field, pa.Array, Int64Array, bool], None]
"""Is shown each field's rows, with their borders, and whether they are items of a list."""

_LISTS = frozenset(("list", "list.struct", "large_list", "large_list.struct"))


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """The pages of a field: ``part`` is where they are, ``lengths`` how many values they have."""

    field_id: FieldId
    part: int
    lengths: Int64Array


@dataclass(slots=True)
class Pages:
    """The parts and pages of some row groups while they are collected, field after field."""

    indices: Indices
    look: Look
    parts: list[Part] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def add(
        self, array: pa.Array, of: Field, borders: Int64Array, path: str, *, in_list: bool = False
    ) -> None:
        """Collect the pages of a field; row group g has the rows ``[borders[g], borders[g + 1])``."""
        array = check_array(array, of, path)
        self.look(of, array, borders, in_list)
        if of.logical_type == "struct":
            for child in of.children:
                below = child_array(array, child.name, path)
                self.add(below, child, borders, f"{path}.{child.name}", in_list=in_list)
        elif of.logical_type in _LISTS:
            offsets, items = encode_lists(array, borders)
            self._add_page(of, offsets, np.diff(borders) + 1)
            (child,) = of.children
            self.add(array.values, child, items, f"{path}.{child.name}", in_list=True)
        else:
            self._add_values(array, of, borders, path)

    def _add_values(self, array: pa.Array, of: Field, borders: Int64Array, path: str) -> None:
        rows = np.diff(borders)
        if pa.types.is_dictionary(array.type):
            array = self.indices(of, array, path)
        if pa.types.is_null(array.type):
            none = np.zeros(len(rows), np.int64)
            self._add_page(of, Slices(np.empty(0, np.uint8), none, none), rows)
        elif of.logical_type in ("string", "binary", "large_string", "large_binary", "json"):
            data, positions = encode_binary(array, borders)
            self.parts.append(data)
            self._add_page(of, positions, rows)
        else:
            while pa.types.is_fixed_size_list(array.type):
                borders = (borders + array.offset) * array.type.list_size
                array = array.values
            self._add_page(of, _plain(array, borders, path), rows)

    def _add_page(self, of: Field, part: Part, lengths: Int64Array) -> None:
        self.entries.append(Entry(of.id, len(self.parts), lengths))
        self.parts.append(part)


def _plain(array: pa.Array, borders: Int64Array, path: str) -> Slices:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_boolean(array.type):
        return encode_bits(array, borders)
    if pa.types.is_nested(array.type) or pa.types.is_null(array.type):
        message = f"column {path!r}: values of type {array.type} have no fixed width"
        raise UnsupportedError(message)
    return encode_fixed_width(array, borders)
