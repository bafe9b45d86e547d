"""The values of a dictionary as one page, plain or variable-length binary.

Data files and manifests hold them alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.assemble import assemble_as
from pennon.encoding.block import Block
from pennon.encoding.read_protocol import Steps
from pennon.encoding.v0_1.binary import decode_binary, encode_binary
from pennon.encoding.v0_1.pages import Pages
from pennon.encoding.v0_1.parts import Part, lay_out, write_parts
from pennon.encoding.v0_1.picks import Picks
from pennon.encoding.v0_1.plain import decode_plain, encode_fixed_width
from pennon.errors import FormatError

BINARY = frozenset((pa.string(), pa.large_string(), pa.binary(), pa.large_binary()))


@dataclass(frozen=True, slots=True)
class DictionaryPlace:
    """The position and the number of the values of a dictionary."""

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
    if value_type in BINARY:
        large = value_type in (pa.large_string(), pa.large_binary())
        block = yield from decode_binary(pages, picks, large=large, nullable=True)
    elif pa.types.is_primitive(value_type):
        block = yield from decode_plain(pages, picks, value_type.bit_width)
    else:
        message = f"a dictionary of values of type {value_type}"
        raise FormatError(message)
    return assemble_as(block, value_type)


def encode_values(values: pa.Array, position: int) -> tuple[pa.Buffer, int]:
    """Return the bytes of a dictionary's values at ``position``, and the position of their page."""
    borders = np.array([0, len(values)], np.int64)
    parts: Sequence[Part]
    if values.type in BINARY:
        parts = encode_binary(values, borders)
    else:
        parts = [encode_fixed_width(values, borders)]
    positions = lay_out(parts, position)
    return write_parts(parts, positions), int(positions[-1, 0])
