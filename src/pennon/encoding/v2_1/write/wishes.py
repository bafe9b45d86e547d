"""What a field's metadata asks of the encoder: the keys ``lance-encoding:*``.

====================  ==================================================================
compression           ``zstd``, ``lz4``: around the encoding; ``fsst`` for text; ``none``: nothing
compression-level     a number
structural-encoding   ``miniblock`` or ``fullzip``
rle-threshold         run lengths only if there are fewer runs than this share of the values
bss                   ``on``, ``off``, ``auto``: byte streams below a compression
dict-divisor          a dictionary only if it has at most 1/n of the items
dict-size-ratio       a dictionary only if it makes the page smaller than this share
====================  ==================================================================

Source: measured (format-facts 1.5); what is misspelt asks for nothing, as with the oracle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from pennon.encoding.v2_1.encodings import BufferCompression
from pennon.errors import ArgumentError

_Number = TypeVar("_Number", int, float)
_PREFIX: Final = "lance-encoding:"
NARROW_BYTES: Final = 256
"""From this width on, values are better alone than in chunks."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """See the module; None where the metadata says nothing."""

    scheme: str | None = None
    level: int | None = None
    structure: str | None = None
    rle_threshold: float | None = None
    streams: str = "auto"
    dict_divisor: int | None = None
    dict_size_ratio: float = 1.0

    @classmethod
    def parse(cls, metadata: Mapping[str, bytes]) -> Self:
        """Return the wishes in a field's metadata.  Raises ArgumentError for what is no number."""
        said = {
            key.removeprefix(_PREFIX): value.decode("utf-8", "replace").lower()
            for key, value in metadata.items()
            if key.startswith(_PREFIX)
        }
        ratio = _number(said, "dict-size-ratio", float)
        if ratio is not None and not 0 < ratio <= 1:
            message = f"{_PREFIX}dict-size-ratio is {ratio}, not above 0 and at most 1"
            raise ArgumentError(message)
        return cls(
            _one_of(said.get("compression"), ("zstd", "lz4", "fsst", "none")),
            _number(said, "compression-level", int),
            _one_of(said.get("structural-encoding"), ("miniblock", "fullzip")),
            _number(said, "rle-threshold", float),
            _one_of(said.get("bss"), ("on", "off")) or "auto",
            _number(said, "dict-divisor", int),
            1.0 if ratio is None else ratio,
        )

    @property
    def compression(self) -> BufferCompression | None:
        """Return the compression to put around an encoding."""
        if self.scheme in ("zstd", "lz4"):
            return BufferCompression(self.scheme, self.level)
        return None

    def prefers_mini_block(self, widest_bytes: int) -> bool:
        """Tell whether a page whose widest value has so many bytes should be mini-block."""
        if self.structure is not None:
            return self.structure == "miniblock"
        return widest_bytes < NARROW_BYTES


def _one_of(word: str | None, known: tuple[str, ...]) -> str | None:
    return word if word in known else None


def _number(said: Mapping[str, str], key: str, kind: type[_Number]) -> _Number | None:
    if key not in said:
        return None
    try:
        return kind(said[key])
    except ValueError as error:
        message = f"{_PREFIX}{key} is {said[key]!r}, not a number"
        raise ArgumentError(message) from error
