"""The nodes of a field's tree: each reads rows of its pages and makes one array of them.

The pages of a nested field lie side by side in a row group, so if a few rows are wanted and all that
they may need lies close together, it is read at once (`pennon.encoding.coalesce`): offsets, items
and whatever these have below take one more request, however deep they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import MIB
from pennon.encoding.assemble import assemble_as, lists_of, retype
from pennon.encoding.block import Block, FixedSizeListBlock
from pennon.encoding.coalesce import FEW_ROWS, coalesce_requests, hull, prefetched
from pennon.encoding.read_protocol import Steps, together
from pennon.encoding.v0_1.binary import decode_binary
from pennon.encoding.v0_1.list import decode_list
from pennon.encoding.v0_1.pages import Pages
from pennon.encoding.v0_1.picks import Picks
from pennon.encoding.v0_1.plain import decode_plain
from pennon.errors import FormatError
from pennon.file.v0_1.dictionary import Values

T = TypeVar("T")

LONGEST_HULL: Final = 4 * MIB
"""Longer than elsewhere: nested columns of few thousand rows, a row group, cost two requests a row so,
and three or more otherwise, which takes about as long."""
UNBOUNDED: Final = 1 << 62
"""How many items a list may reach for where its items have no pages that would say it."""


class Node(Protocol):
    """A field, or one below it."""

    def read(self, picks: Picks) -> Steps[pa.Array]:
        """Return the steps that read rows."""

    def extents(self, pages: Int64Array) -> Iterator[tuple[int, int]]:
        """Yield byte ranges of pages, as far as the page table tells them."""

    def row_counts(self) -> Int64Array | None:
        """Return the number of rows of each page; None if it has none of its own."""


def extents_of(
    pages: Pages, groups: Int64Array, bits: int, behind: int = 0
) -> Iterator[tuple[int, int]]:
    """Yield where values of ``bits`` bits lie in the pages of row groups."""
    for group in np.unique(groups).tolist():
        start = int(pages.positions[group])
        size_bytes = ((int(pages.lengths[group]) + behind) * bits + 7) // 8
        yield start, min(start + size_bytes, pages.file_bytes)


@dataclass(frozen=True, slots=True)
class NullNode:
    """A column of type null, which has no bytes."""

    pages: Pages

    def read(self, picks: Picks) -> Steps[pa.Array]:
        """See `Node.read`."""
        self.pages.check_rows(picks)
        yield from ()
        return pa.Array.from_buffers(pa.null(), picks.count, [None])  # pa.nulls takes a bitmap

    def extents(self, pages: Int64Array) -> Iterator[tuple[int, int]]:  # noqa: ARG002
        """See `Node.extents`."""
        return iter(())

    def row_counts(self) -> Int64Array | None:
        """See `Node.row_counts`."""
        return self.pages.lengths


@dataclass(frozen=True, slots=True)
class PlainNode:
    """Values of fixed width; a fixed-size list has several in a row."""

    pages: Pages
    stored: pa.DataType
    shown: pa.DataType
    bits: int
    dimensions: tuple[int, ...]

    @classmethod
    def of(cls, pages: Pages, stored: pa.DataType, shown: pa.DataType) -> Self:
        """Return the node of a type.  Raises FormatError if its values have no fixed width."""
        dimensions = []
        value = stored
        while pa.types.is_fixed_size_list(value):
            dimensions.append(value.list_size)
            value = value.value_type
        bits = value.byte_width * 8 if pa.types.is_fixed_size_binary(value) else _bits(value)
        row_bits = bits
        for dimension in dimensions:
            row_bits *= dimension
        if row_bits >= UNBOUNDED:
            message = f"values of {row_bits} bits"
            raise FormatError(message)
        return cls(pages, stored, shown, bits, tuple(dimensions))

    def read(self, picks: Picks) -> Steps[pa.Array]:
        """See `Node.read`."""
        block: Block = yield from decode_plain(self.pages, picks, self.bits, self._items)
        rows = picks.count
        blocks = []
        for dimension in self.dimensions:
            blocks.append((rows, dimension))
            rows *= dimension
        for rows, dimension in reversed(blocks):
            block = FixedSizeListBlock(rows, dimension, block)
        return retype(assemble_as(block, self.stored), self.shown)

    @property
    def row_bits(self) -> int:
        """Return how many bits a row has."""
        return self.bits * self._items

    @property
    def _items(self) -> int:
        items = 1
        for dimension in self.dimensions:
            items *= dimension
        return items

    def extents(self, pages: Int64Array) -> Iterator[tuple[int, int]]:
        """See `Node.extents`."""
        return extents_of(self.pages, pages, self.row_bits)

    def row_counts(self) -> Int64Array | None:
        """See `Node.row_counts`."""
        return self.pages.lengths


def _bits(value: pa.DataType) -> int:
    """Return the width of a value.  Raises FormatError if it has none."""
    try:
        return int(value.bit_width)
    except ValueError:
        message = f"plain values of type {value}"
        raise FormatError(message) from None


@dataclass(frozen=True, slots=True)
class BinaryNode:
    """Text or bytes; rows of no bytes are NULL if the field may be NULL."""

    pages: Pages
    stored: pa.DataType
    shown: pa.DataType
    nullable: bool

    def read(self, picks: Picks) -> Steps[pa.Array]:
        """See `Node.read`."""
        large = self.stored in (pa.large_string(), pa.large_binary())
        block = yield from decode_binary(self.pages, picks, large=large, nullable=self.nullable)
        return retype(assemble_as(block, self.stored), self.shown)

    def extents(self, pages: Int64Array) -> Iterator[tuple[int, int]]:
        """See `Node.extents`; where the bytes begin, only the offsets say."""
        return extents_of(self.pages, pages, 64, 1)

    def row_counts(self) -> Int64Array | None:
        """See `Node.row_counts`."""
        return self.pages.lengths


@dataclass(frozen=True, slots=True)
class DictionaryNode:
    """Indices into values that were read before."""

    indices: PlainNode
    values: Values
    shown: pa.DictionaryType

    def read(self, picks: Picks) -> Steps[pa.Array]:
        """See `Node.read`."""
        indices = yield from self.indices.read(picks)
        return self.values.array(indices, self.shown)

    def extents(self, pages: Int64Array) -> Iterator[tuple[int, int]]:
        """See `Node.extents`."""
        return self.indices.extents(pages)

    def row_counts(self) -> Int64Array | None:
        """See `Node.row_counts`."""
        return self.indices.row_counts()


@dataclass(frozen=True, slots=True)
class StructNode:
    """A struct, which is never NULL."""

    stored: pa.DataType
    shown: pa.DataType
    parts: tuple[Node, ...]

    def read(self, picks: Picks) -> Steps[pa.Array]:
        """See `Node.read`."""
        readers = [part.read(picks) for part in self.parts]
        children = yield from at_once(self, picks, together(readers))
        array = pa.Array.from_buffers(self.stored, picks.count, [None], children=children)
        return array if self.shown is self.stored else _extended(self.shown, array)

    def extents(self, pages: Int64Array) -> Iterator[tuple[int, int]]:
        """See `Node.extents`."""
        for part in self.parts:
            yield from part.extents(pages)

    def row_counts(self) -> Int64Array | None:
        """See `Node.row_counts`."""
        return None


@dataclass(frozen=True, slots=True)
class ListNode:
    """Lists, which are never NULL; the pages hold one offset more than rows."""

    offsets: Pages
    stored: pa.DataType
    shown: pa.DataType
    item: Node
    pages: Pages = field(init=False)

    def __post_init__(self) -> None:
        """Count rows in place of offsets."""
        found = self.offsets
        rows = Pages(found.positions, found.lengths - 1, found.file_bytes)
        object.__setattr__(self, "pages", rows)

    def read(self, picks: Picks) -> Steps[pa.Array]:
        """See `Node.read`."""
        large = pa.types.is_large_list(self.stored)
        counts = self.item.row_counts()
        if counts is None:
            counts = np.full(len(self.pages.lengths), UNBOUNDED, np.int64)
        spans, items = yield from decode_list(self.pages, picks, counts, large=large)
        reader = self.item.read(items)
        if not isinstance(self.item, _ONE_ROUND):
            reader = at_once(self.item, items, reader, self._item_starts(items))
        values = yield from reader
        array = lists_of(self.stored, picks.count, spans.offset_bits, spans.offsets, None, values)
        return array if self.shown is self.stored else _extended(self.shown, array)

    def _item_starts(self, items: Picks) -> list[int]:
        """Return where the bytes of the items may begin: behind the offsets of the same group."""
        return [end for _, end in self._own_extents(items.pages)]

    def _own_extents(self, pages: Int64Array) -> Iterator[tuple[int, int]]:
        return extents_of(self.offsets, pages, 64 if pa.types.is_large_list(self.stored) else 32)

    def extents(self, pages: Int64Array) -> Iterator[tuple[int, int]]:
        """See `Node.extents`."""
        yield from self._own_extents(pages)
        yield from self.item.extents(pages)

    def row_counts(self) -> Int64Array | None:
        """See `Node.row_counts`."""
        return self.pages.lengths


_ONE_ROUND = (NullNode, PlainNode, DictionaryNode)


def _extended(shown: pa.DataType, array: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(shown, array)


def at_once(
    node: Node, picks: Picks, reader: Steps[T], starts: list[int] | None = None
) -> Steps[T]:
    """Return ``reader``, which reads rows of a node; if they lie close, on bytes read all at once.

    ``starts`` are positions behind which the node's bytes begin.
    """
    if not 0 < picks.count <= FEW_ROWS:
        return reader
    extents = [*((start, start) for start in starts or ()), *node.extents(picks.pages)]
    extent = hull(extents, LONGEST_HULL)
    return coalesce_requests(reader, 1) if extent is None else prefetched(reader, extent)
