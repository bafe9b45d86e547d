"""Dictionaries of version 0.1: the values once a file, the indices as plain pages.

The values stand behind the pages, plain or as variable-length binary.  The field's entry in the
manifest that the file holds says where, and how many.  A table's manifest repeats them: the same
entry there is a place in the manifest's own file.

Source: seeds 000 and 002, "Dictionary Encoding"; measured (pylance 14.0.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from pennon.encoding.assemble import assemble_as
from pennon.encoding.block import Block
from pennon.encoding.steps import Steps
from pennon.encoding.v0_1.binary import decode_binary
from pennon.encoding.v0_1.pages import Pages
from pennon.encoding.v0_1.picks import Picks
from pennon.encoding.v0_1.plain import decode_plain
from pennon.errors import FormatError

_BINARY = frozenset((pa.string(), pa.large_string(), pa.binary(), pa.large_binary()))


@dataclass(frozen=True, slots=True)
class DictionaryPlace:
    """Where the values of a dictionary lie, and how many there are."""

    position: int
    length: int


def read_values(
    place: DictionaryPlace, value_type: pa.DataType, file_bytes: int
) -> Steps[pa.Array]:
    """Return the steps that read the values of a dictionary, as one page.

    A value of no bytes is NULL, as in a page.  Raises FormatError if they leave the file, or are of a type
    that no dictionary of this version has.
    """
    if place.length < 0 or not 0 <= place.position <= file_bytes:
        message = f"a dictionary of {place.length} values at {place.position}"
        raise FormatError(message)
    pages = Pages(np.array([place.position]), np.array([place.length]), file_bytes)
    zero = np.zeros(1, np.int64)
    picks = Picks.between(zero, zero, np.array([place.length]))
    block: Block
    if value_type in _BINARY:
        large = value_type in (pa.large_string(), pa.large_binary())
        block = yield from decode_binary(pages, picks, large=large, nullable=True)
    elif pa.types.is_primitive(value_type):
        block = yield from decode_plain(pages, picks, value_type.bit_width)
    else:
        message = f"a dictionary of values of type {value_type}"
        raise FormatError(message)
    return assemble_as(block, value_type)


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a dictionary, NULLs left out, because Arrow cannot join dictionaries with NULLs.

    ``places`` are the new indices of the old ones, NULL for a NULL; None if there are no NULLs.
    """

    values: pa.Array
    places: pa.Array | None
    count: int

    @classmethod
    def of(cls, stored: pa.Array, index_type: pa.DataType) -> Self:
        """Return the values as they are stored, or without NULLs.

        A dictionary without any values has a NULL, for the index of a NULL row is 0.
        """
        if len(stored) == 0:
            return cls(stored, pa.nulls(1, index_type), 1)
        if not stored.null_count:
            return cls(stored, None, len(stored))
        held = np.asarray(stored.is_valid())
        places = pa.array(np.cumsum(held) - 1, mask=~held).cast(index_type)
        return cls(stored.drop_null(), places, len(stored))

    def array(self, indices: pa.Array, data_type: pa.DictionaryType) -> pa.Array:
        """Return the dictionary array of indices.  Raises FormatError for one that has no value."""
        if len(indices):
            held = np.asarray(indices)
            wrong = held.min() if held.min() < 0 else held.max()
            if not 0 <= wrong < self.count:
                message = f"dictionary index {wrong} of {self.count} values"
                raise FormatError(message)
        if self.places is not None:
            indices = self.places.take(indices)
        return pa.DictionaryArray.from_arrays(
            indices, self.values, ordered=data_type.ordered, safe=False
        )
