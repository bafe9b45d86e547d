"""Decoded values before they become Arrow arrays.

A block says what the bytes mean without saying what type they have: 4 bytes a row may be int32,
float32 or date32.  `pennon.encoding.assemble` puts block and Arrow type together.  All buffers are
laid out as Arrow lays them out, bitmaps from bit 0 on, and nothing carries an offset.
"""

from __future__ import annotations

from typing import TypeAlias, cast

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FixedWidthBlock:
    """``rows`` values of ``bits_per_value`` bits (1, or a multiple of 8), least significant first."""

    rows: int
    bits_per_value: int
    data: pa.Buffer


@dataclass(frozen=True, slots=True)
class VariableBlock:
    """``rows`` byte strings: ``offsets`` has rows + 1 entries of ``offset_bits`` (32 or 64) bits.

    The first offset is 0 and the last one is within ``data``.
    """

    rows: int
    offset_bits: int
    offsets: pa.Buffer
    data: pa.Buffer


@dataclass(frozen=True, slots=True)
class FixedSizeListBlock:
    """``rows`` lists of ``dimension`` items each."""

    rows: int
    dimension: int
    items: Block


@dataclass(frozen=True, slots=True)
class ListBlock:
    """``rows`` lists; ``offsets`` are rows + 1 int32 or int64 values that start at 0."""

    rows: int
    offset_bits: int
    offsets: pa.Buffer
    validity: pa.Buffer | None
    items: Block


@dataclass(frozen=True, slots=True)
class StructBlock:
    """``rows`` structs, a block for each child."""

    rows: int
    children: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class DictionaryBlock:
    """``rows`` indices into ``items``.

    What an index means depends on the field, so `pennon.encoding.assemble` decides: in a field of
    plain strings 0 is NULL and i names ``items[i - 1]``; in a field that is itself a dictionary
    (logical type ``dict:...``) i names ``items[i]``, and a NULL row names an item that is NULL.
    Source: ledger F-13 (pylance 14.0.2 writes ``['a', NULL, 'b']`` as items a, b, NULL, indices 0 2 1).
    """

    rows: int
    indices: FixedWidthBlock
    items: Block


@dataclass(frozen=True, slots=True)
class AllNullBlock:
    """``rows`` NULLs of any type."""

    rows: int


@dataclass(frozen=True, slots=True)
class NullableBlock:
    """``values`` with a validity bitmap (bit set: not NULL)."""

    rows: int
    validity: pa.Buffer
    values: Block


Block: TypeAlias = (
    FixedWidthBlock
    | VariableBlock
    | FixedSizeListBlock
    | ListBlock
    | StructBlock
    | DictionaryBlock
    | AllNullBlock
    | NullableBlock
)


def block_bytes(block: Block) -> int:
    """Return how many bytes the buffers of a block and of those below it have."""
    parts = (getattr(block, name) for name in block.__slots__)
    return sum(map(_part_bytes, parts))


def _part_bytes(part: object) -> int:
    if isinstance(part, pa.Buffer):
        return int(part.size)
    if isinstance(part, tuple):
        return sum(map(_part_bytes, part))
    return 0 if part is None or isinstance(part, int) else block_bytes(cast("Block", part))
