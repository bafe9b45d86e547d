"""Encoding hints in a field's metadata: the keys ``lance-encoding:*``.

====================  ==================================================================
compression           ``zstd``, ``lz4``: around the encoding; ``fsst`` for text; ``none``: values as
                      they are, though a dictionary may hold them
compression-level     a number
structural-encoding   ``miniblock`` or ``fullzip``, unless a dictionary is found
rle-threshold         run lengths only if there are fewer runs than this share of the values
bss                   ``on``, ``off``, ``auto``: byte streams below a compression
dict-divisor          a dictionary only if it has at most 1/n of the items
dict-size-ratio       a dictionary only if it makes the page smaller than this share
dict-max-size         a dictionary only if its items have at most so many bytes
dict-values-
compression           ``zstd``, ``lz4`` or ``none`` for the items of a dictionary (2.2)
-compression-level    a number
====================  ==================================================================

Source: ledger F-110.  A compression or structure that there is not is refused, and what
should be a number and is none asks for nothing, both as with pylance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self, TypeVar

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.v2_1.encodings import BufferCompression
from pennon.errors import ArgumentError

_Number = TypeVar("_Number", int, float)
_PREFIX: Final = "lance-encoding:"
NARROW_BYTES: Final = 256
"""From this width on, values are better alone than in chunks."""


@dataclass(frozen=True, slots=True)
class EncodingHints:
    """See the module; None where the metadata says nothing."""

    scheme: str | None = None
    level: int | None = None
    structure: str | None = None
    rle_threshold: float | None = None
    streams: str = "auto"
    dict_divisor: int | None = None
    dict_size_ratio: float = 1.0
    dict_max_bytes: int | None = None
    item_scheme: str | None = None
    item_level: int | None = None

    @classmethod
    def parse(cls, metadata: Mapping[str, bytes]) -> Self:
        """Return the hints in a field's metadata.  Raises ArgumentError for unknown words."""
        said = {
            key.removeprefix(_PREFIX): value.decode("utf-8", "replace").lower()
            for key, value in metadata.items()
            if key.startswith(_PREFIX)
        }
        if not said:
            return cls()
        ratio = _number(said, "dict-size-ratio", float)
        if ratio is not None and not 0 < ratio <= 1:
            message = f"{_PREFIX}dict-size-ratio is {ratio}, not above 0 and at most 1"
            raise ArgumentError(message)
        return cls(
            _one_of(said, "compression", ("zstd", "lz4", "fsst", "none")),
            _number(said, "compression-level", int),
            _one_of(said, "structural-encoding", ("miniblock", "fullzip")),
            _number(said, "rle-threshold", float),
            said["bss"] if said.get("bss") in ("on", "off") else "auto",
            max(_number(said, "dict-divisor", int) or 0, 0) or None,
            1.0 if ratio is None else ratio,
            _number(said, "dict-max-size", int),
            _one_of(said, "dict-values-compression", ("zstd", "lz4", "none")),
            _number(said, "dict-values-compression-level", int),
        )

    @property
    def compression(self) -> BufferCompression | None:
        """Return the compression to put around an encoding."""
        if self.scheme in ("zstd", "lz4"):
            return BufferCompression(self.scheme, self.level)
        return None

    @property
    def item_compressions(self) -> tuple[BufferCompression, ...]:
        """Return what the items of a dictionary may be compressed with; the smallest is taken."""
        if self.item_scheme == "none":
            return ()
        schemes = ("lz4", "zstd") if self.item_scheme is None else (self.item_scheme,)
        return tuple(BufferCompression(scheme, self.item_level) for scheme in schemes)

    def prefers_mini_block(self, widest_bytes: int) -> bool:
        """Tell whether a page whose widest value has so many bytes should be mini-block."""
        if self.structure is not None:
            return self.structure == "miniblock"
        return widest_bytes < NARROW_BYTES


def _one_of(said: Mapping[str, str], key: str, known: tuple[str, ...]) -> str | None:
    word = said.get(key)
    if word is None or word in known:
        return word
    message = f"{_PREFIX}{key} is {word!r}; it must be one of {', '.join(known)}"
    raise ArgumentError(message)


def _number(said: Mapping[str, str], key: str, kind: type[_Number]) -> _Number | None:
    try:
        return kind(said[key])
    except (KeyError, ValueError):
        return None
