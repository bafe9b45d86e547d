"""What an encoder hands to the file writer."""

from __future__ import annotations

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.v2_0.encodings import ArrayEncoding


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoding, and the page buffers that it names, in the order of their numbers.

    Encoders take ``first``, the number of the first buffer that they may use: an outer encoding
    numbers its own buffers and those of the inner one in one row.
    """

    encoding: ArrayEncoding
    buffers: tuple[pa.Buffer, ...] = ()
