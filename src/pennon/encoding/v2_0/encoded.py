"""What an encoder hands to the file writer."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.v2_0.encodings import ArrayEncoding

EMPTY = pa.py_buffer(b"")


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoding, and the page buffers that it names, in the order of their numbers.

    Encoders take ``first``, the number of the first buffer that they may use: an outer encoding
    numbers its own buffers and those of the inner one in one row.
    """

    encoding: ArrayEncoding
    buffers: tuple[pa.Buffer, ...] = ()


Bytes: TypeAlias = npt.NDArray[np.uint8]


def as_bytes(buffer: pa.Buffer | None) -> Bytes:
    """Return a buffer as an array of bytes; none is an empty one."""
    return np.frombuffer(EMPTY if buffer is None else buffer, np.uint8)
