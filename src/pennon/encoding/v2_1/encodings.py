"""The compressive encodings of file versions 2.1 and 2.2, as values.

An encoding says how a block of values became buffers.  It is a tree: FSST codes are byte strings,
whose offsets are plain numbers.  The same encoding stands in three places, which give it different
buffers: in the chunks of mini-blocks, in one buffer (dictionaries, levels), and in values that are
stored one by one (full-zip).

Source: `protos/pennon/proto/encodings_v2_1.proto`.
"""

from __future__ import annotations

from typing import TypeAlias

from pennon.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class BufferCompression:
    """A buffer compressed as a whole; ``scheme`` is ``lz4``, ``zstd`` or ``none``."""

    scheme: str
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Flat:
    """Values of one width, one after the other."""

    bits_per_value: int
    compression: BufferCompression | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """Byte strings: offsets, then bytes."""

    offsets: Encoding
    compression: BufferCompression | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """One value for all, in the description itself; None is NULL."""

    value: bytes | None


@dataclass(frozen=True, slots=True)
class OutOfLineBitpacking:
    """Values packed to the one bit width of ``values``, in blocks of 1024."""

    bits_per_value: int
    values: Encoding


@dataclass(frozen=True, slots=True)
class InlineBitpacking:
    """Values packed in blocks of 1024, each with its own bit width in front."""

    bits_per_value: int
    compression: BufferCompression | None = None


@dataclass(frozen=True, slots=True)
class Fsst:
    """Byte strings whose bytes stand for symbols of up to eight bytes."""

    symbol_table: bytes
    values: Encoding


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Indices into items.

    Pages have dictionaries of their own (`MiniBlock`); nobody writes this one.
    """

    indices: Encoding
    items: Encoding
    num_items: int


@dataclass(frozen=True, slots=True)
class Rle:
    """Runs of equal values: the values, and how often each comes."""

    values: Encoding
    run_lengths: Encoding


@dataclass(frozen=True, slots=True)
class ByteStreamSplit:
    """The first bytes of all values, then the second bytes, and so on."""

    values: Encoding


@dataclass(frozen=True, slots=True)
class General:
    """Values with a general compression: of the first buffer of a chunk, or of each value."""

    compression: BufferCompression
    values: Encoding


@dataclass(frozen=True, slots=True)
class FixedSizeList:
    """Lists of ``dimension`` items each, with a validity of the items or without."""

    dimension: int
    has_validity: bool
    values: Encoding


@dataclass(frozen=True, slots=True)
class PackedStruct:
    """Rows of fields of fixed width."""

    bits_per_field: tuple[int, ...]
    values: Encoding


@dataclass(frozen=True, slots=True)
class PackedField:
    """One field of a row: its width if that is fixed, else the width of the size in front of it."""

    value: Encoding
    bits_per_value: int | None
    bits_per_length: int | None


@dataclass(frozen=True, slots=True)
class VariablePackedStruct:
    """Rows of fields of any width, each encoded before the rows were made."""

    fields: tuple[PackedField, ...]


Encoding: TypeAlias = (
    Flat
    | Variable
    | Constant
    | OutOfLineBitpacking
    | InlineBitpacking
    | Fsst
    | Dictionary
    | Rle
    | ByteStreamSplit
    | General
    | FixedSizeList
    | PackedStruct
    | VariablePackedStruct
)
