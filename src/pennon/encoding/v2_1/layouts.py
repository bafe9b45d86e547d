"""The layouts of pages (structural encodings), as values.

==============  ==================================================================================
mini-block      small values in chunks of a power of two of them, each chunk with its levels
full-zip        large values, each with its levels and its size in front
constant        nothing but levels: all values are NULL, or all are the same
blob            a page of another layout that says where the values lie in the file
==============  ==================================================================================

Source: `protos/pennon/proto/encodings_v2_1.proto`.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum
from functools import lru_cache
from typing import TypeAlias

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.v2_1.encodings import Encoding


class Layer(IntEnum):
    """The meaning of one layer of nesting in the definition levels; the numbers are the format's."""

    ALL_VALID_ITEM = 1
    ALL_VALID_LIST = 2
    NULLABLE_ITEM = 3
    NULLABLE_LIST = 4
    EMPTYABLE_LIST = 5
    NULL_AND_EMPTY_LIST = 6

    @property
    def is_list(self) -> bool:
        """Tell whether this is a layer of lists, not of values or structs."""
        return _IS_LIST[self]

    @property
    def has_nulls(self) -> bool:
        """Tell whether the layer has a level for NULL."""
        return _HAS_NULLS[self]

    @property
    def has_empty(self) -> bool:
        """Tell whether the layer has a level for empty lists."""
        return _HAS_EMPTY[self]

    @property
    def levels(self) -> int:
        """Return how many definition levels the layer has."""
        return _HAS_NULLS[self] + _HAS_EMPTY[self]


# By the number of the layer: a point read asks for these as often as it reads a value.
_IS_LIST = (False, False, True, False, True, True, True)
_HAS_NULLS = (False, False, False, True, True, False, True)
_HAS_EMPTY = (False, False, False, False, False, True, True)

Layers: TypeAlias = tuple[Layer, ...]
"""From the innermost layer (the values) to the outermost."""


@lru_cache(maxsize=256)
def max_repetition(layers: Layers) -> int:
    """Return the repetition level that begins a row; 0 without lists."""
    return sum(layer.is_list for layer in layers)


@lru_cache(maxsize=256)
def max_visible(layers: Layers) -> int:
    """Return the highest definition level at which there still is a value (NULL or not).

    Higher ones are NULL and empty lists, and what is around them.
    """
    levels = 0
    for layer in layers:
        if layer.is_list:
            break
        levels += layer.levels
    return levels


@dataclass(frozen=True, slots=True)
class MiniBlock:
    """See the module; ``index_depth`` is 0 without lists."""

    rep: Encoding | None
    definition: Encoding | None
    values: Encoding
    dictionary: Encoding | None
    num_dictionary_items: int
    layers: Layers
    num_buffers: int
    index_depth: int
    num_items: int
    is_large: bool

    @property
    def kin(self) -> Hashable:
        """Return how chunks are encoded: what pages have in common that are, but for dictionaries, alike."""
        encodings = (self.rep, self.definition, self.values)
        return encodings, self.layers, self.num_buffers, self.index_depth, self.is_large


@dataclass(frozen=True, slots=True)
class FullZip:
    """See the module; exactly one of ``bits_per_value`` and ``bits_per_offset`` is not None."""

    bits_rep: int
    bits_def: int
    bits_per_value: int | None
    bits_per_offset: int | None
    num_items: int
    num_visible_items: int
    values: Encoding
    layers: Layers


@dataclass(frozen=True, slots=True)
class ConstantPage:
    """See the module; levels without an encoding are plain 16 bit numbers."""

    value: bytes | None
    rep: Encoding | None
    definition: Encoding | None
    num_rep: int
    num_def: int
    layers: Layers


@dataclass(frozen=True, slots=True)
class BlobPage:
    """See the module; ``layers`` are those of the values, the inner layout has one without NULLs."""

    inner: Layout
    layers: Layers


Layout: TypeAlias = MiniBlock | FullZip | ConstantPage | BlobPage
