"""File versions: which generation of the format a data file is written in, and what it can hold.

A name of pylance becomes a number here and stays one: inside the code nothing is called "stable".
Code that needs a property of a version asks for it by name: ``version.holds(Ability.MAPS)``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, Self, cast

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError, FormatError, UnsupportedError

_NAMES = {
    "legacy": (0, 1),
    "0.1": (0, 1),
    "0.3": (2, 0),
    "2.0": (2, 0),
    "2.1": (2, 1),
    "2.2": (2, 2),
    "2.3": (2, 3),
    "stable": (2, 2),
    "next": (2, 3),
}
_NEWEST_MINOR = 3


class Ability(Enum):
    """An ability that file versions have or lack."""

    MAPS = auto()
    BLOBS_V2 = auto()
    NO_BYTES = auto()
    """Fixed-size binary values of no bytes."""
    EMPTY_STRUCTS = auto()
    """Structs without fields."""
    EMPTY_STRUCT_ITEMS = auto()
    """Structs without fields in lists."""
    BLOB_ITEMS = auto()
    """Blobs of version 1 in lists."""
    FIXED_LISTS_OF_NULLS = auto()
    FIXED_LISTS_OF_STRUCTS = auto()
    ALL_DICTIONARIES = auto()
    """Dictionaries of other values than integers, text and bytes."""
    PACKED_STRUCTS = auto()
    """Structs whose metadata asks for packing are packed; else it changes nothing."""
    PACKED_TEXT = auto()
    """Text and bytes as fields of packed structs."""
    PACKED_FIXED_LISTS = auto()
    """Fixed-size lists as fields of packed structs."""
    NULL_STRUCTS = auto()
    GROWN_STRUCTS = auto()
    """Structs without some fields of the table's schema: those are NULL."""
    ZONE_MAPS = auto()


@dataclass(frozen=True, slots=True, order=True)
class FileVersion:
    """A file version such as 2.0; versions compare in the order of their age."""

    major: int
    minor: int

    @classmethod
    def parse(cls, name: str | float | FileVersion) -> Self:
        """Return the version that ``data_storage_version=name`` means.

        The two aliases move from release to release: they mean what pylance 14 means by them,
        ``stable`` 2.2 and ``next`` 2.3.  Raises ArgumentError for any other name.

        Source: seed 001, table of versions; format-facts 0, row 1.
        """
        numbers = _NAMES.get(str(name).lower())
        if numbers is None:
            known = ", ".join(_NAMES)
            message = f"unknown file version {str(name)!r}; the versions are {known}"
            raise ArgumentError(message)
        return cls(*numbers)

    @classmethod
    def from_numbers(cls, major: int, minor: int) -> Self:
        """Return the version that a footer or a manifest means by its two numbers.

        (0, 0), (0, 1) and (0, 2) are all 0.1; (0, 3) was the preview of 2.0.  Raises FormatError
        for numbers that were never given out, UnsupportedError for a version newer than all known.

        Source: format-facts 0, row 5.
        """
        known = _BY_NUMBERS.get((major, minor))
        if known is not None:
            return cast("Self", known)
        if major == 2 and 0 <= minor <= _NEWEST_MINOR:
            return cls(major, minor)
        if (major, minor) > (2, _NEWEST_MINOR):
            raise _newer_than_known(f"{major}.{minor}")
        message = f"file version {major}.{minor} is not known"
        raise FormatError(message)

    def to_numbers(self) -> tuple[int, int]:
        """Return (major, minor) as a new footer and a new manifest carry them; 0.1 is (0, 2)."""
        return (0, 2) if self == V0_1 else (self.major, self.minor)

    def holds(self, ability: Ability) -> bool:
        """Return whether files of this version have an ability; those newer than all known have all of the newest."""
        return ability in _ABILITIES.get(self, _OF_2_2)

    def __str__(self) -> str:
        """Return e.g. ``2.0``."""
        return f"{self.major}.{self.minor}"


V0_1 = FileVersion(0, 1)
V2_0 = FileVersion(2, 0)
V2_1 = FileVersion(2, 1)
V2_2 = FileVersion(2, 2)

READABLE = (V0_1, V2_0, V2_1, V2_2)
"""The versions in which Pennon reads data files, oldest first."""

WRITABLE = (V0_1, V2_0, V2_1, V2_2)
"""The versions in which Pennon writes data files, oldest first."""

_OF_2_0: Final = frozenset(
    {
        Ability.EMPTY_STRUCTS,
        Ability.EMPTY_STRUCT_ITEMS,
        Ability.BLOB_ITEMS,
        Ability.FIXED_LISTS_OF_NULLS,
        Ability.ALL_DICTIONARIES,
        Ability.PACKED_STRUCTS,
        Ability.PACKED_FIXED_LISTS,
        Ability.ZONE_MAPS,
    }
)
_OF_2_1: Final = frozenset(
    {
        Ability.EMPTY_STRUCTS,
        Ability.FIXED_LISTS_OF_NULLS,
        Ability.ALL_DICTIONARIES,
        Ability.PACKED_STRUCTS,
        Ability.NULL_STRUCTS,
    }
)
_OF_2_2: Final = _OF_2_1 | {
    Ability.MAPS,
    Ability.BLOBS_V2,
    Ability.NO_BYTES,
    Ability.FIXED_LISTS_OF_STRUCTS,
    Ability.PACKED_TEXT,
    Ability.PACKED_FIXED_LISTS,
    Ability.GROWN_STRUCTS,
}
_ABILITIES: Final[Mapping[FileVersion, frozenset[Ability]]] = {
    V0_1: frozenset(),
    V2_0: _OF_2_0,
    V2_1: _OF_2_1,
    V2_2: _OF_2_2,
}
"""Source: format-facts 0.1 (types by version); ledger F-76 to F-85."""


def oldest_with(ability: Ability) -> FileVersion:
    """Return the oldest version whose files have an ability: error texts name it."""
    return next(version for version in READABLE if version.holds(ability))


_BY_NUMBERS = {(0, 0): V0_1, (0, 1): V0_1, (0, 2): V0_1, (0, 3): V2_0, (2, 1): V2_1, (2, 2): V2_2}
_BY_NUMBERS[2, 0] = V2_0

DEFAULT_VERSION = V2_1
"""The version of new data files where nobody asks for one and no table says one (decision 021)."""


def check_not_newer(name: str) -> None:
    """Raise UnsupportedError if a manifest names a version newer than all that Pennon knows."""
    if name in _NAMES:
        return
    numbers = re.fullmatch(r"([0-9]{1,5})\.([0-9]{1,5})", name)
    if numbers and (int(numbers[1]), int(numbers[2])) > (2, _NEWEST_MINOR):
        raise _newer_than_known(name)


def _newer_than_known(version: str) -> UnsupportedError:
    reads = f"which reads versions {READABLE[0]} to {READABLE[-1]}"
    return UnsupportedError(f"file version {version} is newer than this release of Pennon, {reads}")


def check_is_written(version: FileVersion) -> None:
    """Raise UnsupportedError unless Pennon writes data files of that version."""
    if version in WRITABLE:
        return
    *older, newest = WRITABLE
    message = (
        f"data files of version {version} cannot be written yet; Pennon writes versions "
        f"{', '.join(map(str, older))} and {newest}, the newest is asked for with {str(newest)!r}"
    )
    raise UnsupportedError(message)
