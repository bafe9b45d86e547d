"""Images and sounds among bytes, known by how they begin.

Only what begins as one of a few formats is sent as such.  SVG is never among them: it is a document that may hold scripts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HEAD_BYTES: Final = 4096
"""So many bytes of a value are looked at; the size of most JPEGs stands among them."""

MAX_PIXELS: Final = 50_000_000
"""An image of more is not shown: a small file could take all memory of a browser."""


@dataclass(frozen=True, slots=True)
class Media:
    """A format, ``image/png`` or so; width and height in pixels, 0 where the beginning does not say them."""

    mime: str
    width: int = 0
    height: int = 0

    @property
    def is_image(self) -> bool:
        """Tell an image from a sound."""
        return self.mime.startswith("image/")

    @property
    def is_shown(self) -> bool:
        """Tell whether the page shows it: it is not an image of too many pixels."""
        return self.width * self.height <= MAX_PIXELS

    @property
    def name(self) -> str:
        """Return the name of the format for people: PNG, JPEG, ..."""
        return self.mime.partition("/")[2].removeprefix("x-").upper().replace("MPEG", "MP3")


def sniff(head: bytes) -> Media | None:
    """Return the format of a value by its first bytes; None if it is none of those that the page shows."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return Media("image/png", _big(head[16:20]), _big(head[20:24]))
    if head.startswith(b"\xff\xd8\xff"):
        return Media("image/jpeg", *_jpeg_size(head))
    if head.startswith((b"GIF87a", b"GIF89a")):
        return Media("image/gif", _little(head[6:8]), _little(head[8:10]))
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return Media("image/webp", *_webp_size(head))
    if head.startswith(b"RIFF") and head[8:12] == b"WAVE":
        return Media("audio/wav")
    if head.startswith(b"OggS"):
        return Media("audio/ogg")
    if head.startswith(b"fLaC"):
        return Media("audio/flac")
    if head.startswith(b"ID3") or (
        head[:1] == b"\xff" and head[1:2] in b"\xfb\xf3\xf2" and head[1:2]
    ):
        return Media("audio/mpeg")
    return None


def is_svg(head: bytes) -> bool:
    """Tell whether bytes look like an SVG document, which the page names, but never shows."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:512].lower()
    return start.startswith(b"<svg") or (start.startswith((b"<?xml", b"<!--")) and b"<svg" in start)


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _webp_size(head: bytes) -> tuple[int, int]:
    kind = head[12:16]
    if kind == b"VP8X":
        return _little(head[24:27]) + 1, _little(head[27:30]) + 1
    if kind == b"VP8L":
        bits = _little(head[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
    return 0, 0


def _jpeg_size(head: bytes) -> tuple[int, int]:
    """Return the size that the first frame header says; 0, 0 if it lies further on."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _big(head[at + 7 : at + 9]), _big(head[at + 5 : at + 7])
        at += 2 + max(_big(head[at + 2 : at + 4]), 2)
    return 0, 0
