"""The values of a page on their way into it: what is left of an array without its NULLs and lists."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.v2_1.encodings import Encoding

Words: TypeAlias = npt.NDArray[Any]

WORD_TYPES = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


@dataclass(frozen=True, slots=True, eq=False)
class FixedValues:
    """``count`` values of ``bits`` bits each, bit-packed if that is not whole bytes."""

    count: int
    bits: int
    data: Bytes

    @property
    def size_bytes(self) -> int:
        """Return how many bytes the values have together."""
        return len(self.data)

    @property
    def words(self) -> Words:
        """Return the values as unsigned words of their width (8, 16, 32 or 64 bits)."""
        return self.data.view(WORD_TYPES[self.bits])


@dataclass(frozen=True, slots=True, eq=False)
class StringValues:
    """Byte strings: string i is ``data[offsets[i] : offsets[i + 1]]``; readers want ``width`` bytes."""

    offsets: Int64Array
    data: Bytes
    width: int

    @property
    def count(self) -> int:
        """Return the number of strings."""
        return len(self.offsets) - 1

    @property
    def size_bytes(self) -> int:
        """Return how many bytes the strings have together."""
        return int(self.offsets[-1] - self.offsets[0])


@dataclass(frozen=True, slots=True, eq=False)
class ListLayer:
    """One layer of fixed-size lists: a dimension, and the validity of the items (a bit each)."""

    dimension: int
    validity: Bytes | None


@dataclass(frozen=True, slots=True, eq=False)
class ListValues:
    """Fixed-size lists, of lists, ... of values of a fixed width; the outermost layer comes first."""

    count: int
    layers: tuple[ListLayer, ...]
    items: FixedValues


@dataclass(frozen=True, slots=True, eq=False)
class RowValues:
    """Rows of a packed struct: fields of fixed width side by side."""

    bits_per_field: tuple[int, ...]
    rows: FixedValues

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return self.rows.count


@dataclass(frozen=True, slots=True, eq=False)
class MixedRowValues:
    """Rows of a packed struct with byte strings or lists of one size among its fields (from 2.2 on)."""

    count: int
    fields: tuple[FixedValues | StringValues | ListValues, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DictionaryValues:
    """Indices into items."""

    indices: FixedValues
    items: FixedValues | StringValues

    @property
    def count(self) -> int:
        """Return the number of indices."""
        return self.indices.count


Values: TypeAlias = (
    FixedValues | StringValues | ListValues | RowValues | MixedRowValues | DictionaryValues
)


@dataclass(frozen=True, slots=True, eq=False)
class Chunked:
    """Values encoded in chunks: ``sizes[b][i]`` bytes of buffer b belong to chunk i.

    All chunks but the last have a power of two of values.
    """

    encoding: Encoding
    counts: Int64Array
    buffers: tuple[Bytes, ...]
    sizes: tuple[Int64Array, ...]

    @property
    def size_bytes(self) -> int:
        """Return how many bytes a page of these chunks has, if there are no levels."""
        header = (2 + 2 * len(self.sizes) + 7) // 8 * 8
        padded = sum(int(((sizes + 7) // 8 * 8).sum()) for sizes in self.sizes)
        return padded + len(self.counts) * (header + 2)


@dataclass(frozen=True, slots=True, eq=False)
class Single:
    """Values encoded one by one: of one width, or (``offsets``) of any."""

    encoding: Encoding
    data: Bytes
    bits_per_value: int | None
    offsets: Int64Array | None = None
    offset_width: int = 0


MOST_VALUES: Final = 4096
"""Values of a chunk, for readers hold them all in memory to find one."""


MOST_CHUNK_BYTES: Final = 8186
"""Bytes of the values of a chunk; with the worst of levels it stays below 32 KiB."""


def even_counts(count: int, per_chunk: int) -> Int64Array:
    """Return chunks of ``per_chunk`` values, and one of what is left."""
    counts = np.full(-(-count // per_chunk), per_chunk, np.int64)
    if count % per_chunk:
        counts[-1] = count % per_chunk
    return counts


def values_per_chunk(bits: int) -> int:
    """Return the largest power of two of values that fits a chunk; 0 if not even two do."""
    per_chunk = MOST_VALUES
    while per_chunk > 1 and per_chunk * bits > 8 * MOST_CHUNK_BYTES:
        per_chunk //= 2
    return 0 if per_chunk < 2 or (bits % 8 and per_chunk < 8) else per_chunk
