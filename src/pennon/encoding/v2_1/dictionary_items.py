"""The items of a page's dictionary, as they stand in their buffer: plain, packed or compressed (2.2)."""

from __future__ import annotations

from typing import Final

import numpy as np

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.kernels.pack import block_widths, pack_blocks
from pennon.encoding.v2_1.bitpacked import BLOCK_VALUES, encode_inline
from pennon.encoding.v2_1.encoding_hints import EncodingHints
from pennon.encoding.v2_1.encodings import Encoding, Flat, General, OutOfLineBitpacking, Variable
from pennon.encoding.v2_1.general import compress_whole
from pennon.encoding.v2_1.page_rules import PageRules
from pennon.encoding.v2_1.values import WORD_TYPES, FixedValues, StringValues
from pennon.encoding.v2_1.variable import encode_variable_blocks

_FEWEST_BYTES: Final = 64
"""What is said of a compression costs about what it saves of fewer bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedItems:
    """``count`` items in one buffer."""

    encoding: Encoding
    data: Bytes
    count: int


def encode_items(
    items: FixedValues | StringValues, hints: EncodingHints, rules: PageRules
) -> EncodedItems:
    """Return the items as they are, or packed or compressed if the version allows that and it is smaller."""
    plain = _plain(items)
    if not rules.free_dictionaries or len(plain.data) < _FEWEST_BYTES:
        return plain
    found = plain
    if isinstance(items, FixedValues) and items.bits in WORD_TYPES and hints.item_scheme is None:
        packed = _packed(items)
        found = packed if len(packed.data) < len(plain.data) else plain
    for compression in hints.item_compressions:
        data = compress_whole(plain.data, compression)
        if len(data) < len(found.data):
            found = EncodedItems(General(compression, plain.encoding), data, plain.count)
    return found


def _packed(items: FixedValues) -> EncodedItems:
    """Return numbers without their upper bits; readers take in-line blocks here only if it is one."""
    if items.count <= BLOCK_VALUES:
        inline = encode_inline(items)
        return EncodedItems(inline.encoding, inline.buffers[0], items.count)
    width = max(1, int(block_widths(items.words).max()))
    data, _ = pack_blocks(items.words, np.array([items.count]), width)
    encoding = OutOfLineBitpacking(items.bits, Flat(width))
    return EncodedItems(encoding, data, items.count)


def _plain(items: FixedValues | StringValues) -> EncodedItems:
    if isinstance(items, FixedValues):
        return EncodedItems(Flat(items.bits), items.data, items.count)
    encoding = Variable(Flat(8 * items.width))
    return EncodedItems(encoding, encode_variable_blocks(items), items.count)
