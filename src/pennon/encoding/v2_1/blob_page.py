"""Blob pages: where the values lie in the file, and how they nest.

The page is one of rows (position u64, size u64).  A size of 0 means an empty value at position 0;
elsewhere the position holds the levels: ``definition << 16 | repetition``.

Source: ledger F-89; the proto says only that the position is the level.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.block import Block, FixedWidthBlock, StructBlock
from pennon.encoding.v2_1.layouts import Layers, max_repetition
from pennon.encoding.v2_1.page import Levels
from pennon.errors import FormatError, UnsupportedError


@dataclass(frozen=True, slots=True, eq=False)
class Blobs:
    """Where each value lies; those of size 0 have no bytes."""

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
    if packed.max() >> 32 or (packed & 0xFFFF).any():
        message = "blobs with levels that are none"
        raise FormatError(message)
    definition = (packed >> np.uint64(16)).astype(np.uint16)
    return Blobs(positions, sizes, Levels(None, definition, layers))


def _numbers(block: Block) -> npt.NDArray[np.uint64]:
    if not isinstance(block, FixedWidthBlock) or block.bits_per_value != 64:
        message = "descriptions of blobs that are no 64 bit numbers"
        raise FormatError(message)
    return np.frombuffer(block.data, "<u8", block.rows)
