"""Blob pages: where the values lie in the file, and how they nest.

The page is one of rows (position u64, size u64).

    a value         where its bytes lie in the file
    an empty value  position 0, size 0
    no value        position = definition level << 16 | repetition level, size 0

Source: ledger F-89; the proto says only that the position is the level.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.blobs import DESCRIPTION_TYPE, encode_blobs
from pennon.encoding.block import Block, FixedWidthBlock, StructBlock
from pennon.encoding.v2_1.layouts import BlobPage, Layer, Layers, max_repetition
from pennon.encoding.v2_1.mini_block import encode_mini_block
from pennon.encoding.v2_1.packed_struct import encode_packed_struct
from pennon.encoding.v2_1.page import EncodedPage, Levels
from pennon.encoding.v2_1.page_rules import PageRules
from pennon.encoding.v2_1.values import FixedValues, RowValues
from pennon.errors import FormatError, UnsupportedError


@dataclass(frozen=True, slots=True, eq=False)
class Blobs:
    """The position of each value; values of size 0 have no bytes."""

    positions: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.uint64]
    levels: Levels


def blobs_of(descriptions: Block, layers: Layers) -> Blobs:
    """Return what the rows of a blob page mean.

    Raises FormatError if they are no descriptions, UnsupportedError for lists of blobs.
    """
    if max_repetition(layers):
        message = "a list of blobs, which no writer makes"
        raise UnsupportedError(message)
    if not isinstance(descriptions, StructBlock) or len(descriptions.children) != 2:
        message = f"blobs described by {type(descriptions).__name__}"
        raise FormatError(message)
    positions, sizes = (_numbers(child) for child in descriptions.children)
    is_level = (sizes == 0) & (positions != 0)
    if not is_level.any():
        return Blobs(positions, sizes, Levels(None, None, layers))
    packed = np.where(is_level, positions, 0)
    if int(packed.max()) >> 32 or (packed & np.uint64(0xFFFF)).any():
        message = "blobs with levels that are none"
        raise FormatError(message)
    definition = (packed >> np.uint64(16)).astype(np.uint16)
    return Blobs(positions, sizes, Levels(None, definition, layers))


def _numbers(block: Block) -> npt.NDArray[np.uint64]:
    if not isinstance(block, FixedWidthBlock) or block.bits_per_value != 64:
        message = "the descriptions of blobs must be 64-bit numbers"
        raise FormatError(message)
    return np.frombuffer(block.data, "<u8", block.rows)


def describe_blobs(array: pa.Array, write: Callable[[pa.Buffer], int]) -> pa.StructArray:
    """Write large binaries, each by itself, and return where they are; NULL where they are NULL."""
    described = encode_blobs(array, write)
    if array.null_count == 0:
        return described
    fields = [described.field(number) for number in range(2)]
    mask = array.is_null()
    return pa.StructArray.from_arrays(fields, fields=list(DESCRIPTION_TYPE), mask=mask)


def encode_blob_page(
    descriptions: pa.StructArray, levels: Levels, rules: PageRules
) -> EncodedPage | None:
    """Encode a page of descriptions, one for each level; those that are NULL have a level that says so."""
    columns = [descriptions.field(number).fill_null(0).to_numpy() for number in range(2)]
    if levels.definition is not None:
        is_null = levels.definition > 0
        columns[0] = np.where(is_null, levels.definition.astype(np.uint64) << 16, columns[0])
        columns[1] = np.where(is_null, 0, columns[1])
    table = np.stack(columns, axis=1).astype(np.uint64, copy=False)
    rows = FixedValues(len(table), 2 * 64, table.reshape(-1).view(np.uint8))
    chunks = encode_packed_struct(RowValues((64, 64), rows))
    plain = Levels(None, None, (Layer.ALL_VALID_ITEM,))
    page = None if chunks is None else encode_mini_block(plain, chunks, rules)
    return None if page is None else EncodedPage(BlobPage(page.layout, levels.layers), page.buffers)
