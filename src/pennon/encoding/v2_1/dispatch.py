"""From an encoding (a value) to the function that decodes it.

The mappings themselves are built in one place, `pennon.encoding.v2_1.codecs`.  They are passed down
to every decoder, so that decoders which hold other encodings inside need not import their siblings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.block import Block
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.chunks import Chunks
from pennon.encoding.v2_1.encodings import BufferCompression, Encoding
from pennon.errors import FormatError, UnsupportedError


class ChunkDecoder(Protocol):
    """Decodes all chunks of a page; ``encoding`` is of the one class that the decoder is for."""

    def __call__(self, encoding: Any, chunks: Chunks, items: Rows, codecs: Codecs, /) -> Block:
        """Return the values ``items``, which are numbered through all chunks."""


class ValueDecoder(Protocol):
    """Decodes values that were encoded one by one."""

    def __call__(self, encoding: Any, stored: Block, codecs: Codecs, /) -> Block:
        """Return the values that ``stored`` (of one width, or byte strings) stand for."""


@dataclass(frozen=True, slots=True)
class Codecs:
    """The decoders, by the class of the encoding, for each of the three places of an encoding."""

    chunks: Mapping[type[Any], ChunkDecoder]
    """In the chunks of mini-blocks."""
    blocks: Mapping[type[Any], ChunkDecoder]
    """In one buffer, of which nothing but the number of its values is known."""
    values: Mapping[type[Any], ValueDecoder]
    """In values that stand for themselves (full-zip, fields of packed rows)."""

    def decode_chunks(self, encoding: Encoding, chunks: Chunks, items: Rows) -> Block:
        """Return values of mini-block chunks.  Raises FormatError if the encoding cannot be there."""
        decoder = self.chunks.get(type(encoding))
        if decoder is None:
            raise _misplaced(encoding, "the chunks of a mini-block page")
        return decoder(encoding, chunks, items, self)

    def decode_blocks(self, encoding: Encoding, chunks: Chunks, items: Rows) -> Block:
        """Return values of chunks of one plain buffer each (levels, dictionaries)."""
        decoder = self.blocks.get(type(encoding))
        if decoder is None:
            raise _misplaced(encoding, "levels or a dictionary")
        return decoder(encoding, chunks, items, self)

    def decode_values(self, encoding: Encoding, stored: Block) -> Block:
        """Return what values that were encoded one by one stand for."""
        decoder = self.values.get(type(encoding))
        if decoder is None:
            raise _misplaced(encoding, "single values")
        return decoder(encoding, stored, self)


def _misplaced(encoding: Encoding, place: str) -> FormatError:
    return FormatError(f"{place} cannot be encoded as {type(encoding).__name__}")


def refuse_compression(compression: BufferCompression | None) -> None:
    """Raise UnsupportedError for a buffer with a compression of its own, which no known writer makes."""
    if compression is not None and compression.scheme != "none":
        message = f"a buffer compressed with {compression.scheme} by itself"
        raise UnsupportedError(message)
