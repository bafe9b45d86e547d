"""The array and column encodings of file version 2.0, as values.

Source: seed 004 (encodings.proto of early 2.0) and `protos/pennon/proto/encodings_v2_0.proto`.
Each class is one arm of the ``ArrayEncoding`` oneof; `pennon.encoding.v2_0.wire` turns messages into
these and back.  Decoders and encoders live in the module named after the encoding.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass

Place: TypeAlias = Literal["page", "column", "file"]


@dataclass(frozen=True, slots=True)
class BufferRef:
    """A pointer to a buffer: its number among those of its page, column or file."""

    index: int
    place: Place = "page"


@dataclass(frozen=True, slots=True)
class Compression:
    """The compression scheme of a whole buffer: ``zstd`` or ``lz4``."""

    scheme: str
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Flat:
    """Fixed-width values, one after the other."""

    bits_per_value: int
    buffer: BufferRef
    compression: Compression | None = None


@dataclass(frozen=True, slots=True)
class NoNulls:
    """Values without NULLs."""

    values: ArrayEncoding


@dataclass(frozen=True, slots=True)
class SomeNulls:
    """Values beside a validity bitmap."""

    validity: ArrayEncoding
    values: ArrayEncoding


@dataclass(frozen=True, slots=True)
class AllNulls:
    """Only NULLs, no buffer."""


@dataclass(frozen=True, slots=True)
class FixedSizeList:
    """``dimension`` items a row."""

    dimension: int
    items: ArrayEncoding
    has_validity: bool = False


@dataclass(frozen=True, slots=True)
class List:
    """List offsets; the items are in the next column."""

    offsets: ArrayEncoding
    null_offset_adjustment: int
    num_items: int


@dataclass(frozen=True, slots=True)
class SimpleStruct:
    """A struct's header column: no data."""


@dataclass(frozen=True, slots=True)
class Binary:
    """Byte strings: end offsets (NULL adds ``null_adjustment``) and the bytes."""

    indices: ArrayEncoding
    bytes: ArrayEncoding
    null_adjustment: int


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Indices into items; what index 0 means depends on the field (see `DictionaryBlock`)."""

    indices: ArrayEncoding
    items: ArrayEncoding
    num_dictionary_items: int


@dataclass(frozen=True, slots=True)
class Fsst:
    """A Binary whose bytes are FSST codes."""

    binary: ArrayEncoding
    symbol_table: bytes


@dataclass(frozen=True, slots=True)
class PackedStruct:
    """Fixed-width fields side by side, row after row, in one buffer."""

    inner: tuple[ArrayEncoding, ...]
    buffer: BufferRef


@dataclass(frozen=True, slots=True)
class Bitpacked:
    """Integers of fewer bits than their type, packed without gaps."""

    compressed_bits_per_value: int
    uncompressed_bits_per_value: int
    buffer: BufferRef
    signed: bool


@dataclass(frozen=True, slots=True)
class BitpackedForNonNeg:
    """Non-negative integers packed in FastLanes order, 1024 a chunk."""

    compressed_bits_per_value: int
    uncompressed_bits_per_value: int
    buffer: BufferRef


@dataclass(frozen=True, slots=True)
class FixedSizeBinary:
    """Byte strings that all have ``byte_width`` bytes, stored without offsets."""

    bytes: ArrayEncoding
    byte_width: int


@dataclass(frozen=True, slots=True)
class Constant:
    """One value for every row."""

    value: bytes


ArrayEncoding: TypeAlias = (
    Flat
    | NoNulls
    | SomeNulls
    | AllNulls
    | FixedSizeList
    | List
    | SimpleStruct
    | Binary
    | Dictionary
    | Fsst
    | PackedStruct
    | Bitpacked
    | BitpackedForNonNeg
    | FixedSizeBinary
    | Constant
)


@dataclass(frozen=True, slots=True)
class Values:
    """A column of plain values."""


@dataclass(frozen=True, slots=True)
class ZoneIndex:
    """A column with a zone map beside it."""

    rows_per_zone: int
    zone_map: BufferRef
    inner: ColumnEncoding


@dataclass(frozen=True, slots=True)
class Blob:
    """A column whose large values lie elsewhere in the file; the pages hold (position, size)."""

    inner: ColumnEncoding


ColumnEncoding: TypeAlias = Values | ZoneIndex | Blob


def without_zones(encoding: ColumnEncoding) -> Values | Blob:
    """Return the encoding below any zone indices."""
    while isinstance(encoding, ZoneIndex):
        encoding = encoding.inner
    return encoding


def is_blob(encoding: ColumnEncoding) -> bool:
    """Tell whether a column's pages describe values that lie elsewhere."""
    return isinstance(without_zones(encoding), Blob)


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoding, and the page buffers that it names, in the order of their numbers.

    Encoders take ``first``, the number of the first buffer that they may use: an outer encoding
    numbers its own buffers and those of the inner one in one row.
    """

    encoding: ArrayEncoding
    buffers: tuple[pa.Buffer, ...] = ()
