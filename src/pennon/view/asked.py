"""The parameters of a request to the page, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pennon.errors import ArgumentError

MAX_TEXT: Final = 8192
"""Characters of one parameter; a longer filter belongs into a program."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The parameters of one request; all methods raise ArgumentError for a value that cannot be."""

    values: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return a text, empty if it was not given."""
        value = self.values.get(name, "")
        if len(value) > MAX_TEXT:
            message = f"{name} has {len(value):,} characters; {MAX_TEXT:,} is the most"
            raise ArgumentError(message)
        return value.strip()

    def number(self, name: str, default: int, most: int) -> int:
        """Return a number from 0 to ``most``; a larger one counts as ``most``."""
        value = self.values.get(name, "")
        if not value:
            return default
        if not (value.isascii() and value.isdecimal() and len(value) < 21):
            message = f"{name} must be a whole number, 0 or greater"
            raise ArgumentError(message)
        return min(int(value), most)

    def address(self, name: str) -> int | None:
        """Return the address of a row (``_rowaddr``), None if it was not given."""
        return self.number(name, 0, (1 << 64) - 1) if self.values.get(name) else None
