"""Units: the numbers that must not be mixed up, each with a type of its own; bits and bytes."""

from __future__ import annotations

from typing import NewType

KIB = 1024
MIB = 1024 * KIB

FieldId = NewType("FieldId", int)
"""The number of a schema field, unique in a table for ever (ideally; see ledger F-33)."""

ColumnIndex = NewType("ColumnIndex", int)
"""The number of a column inside one data file."""

FragmentId = NewType("FragmentId", int)

RowOffset = NewType("RowOffset", int)
"""The number of a row inside its fragment, deleted rows counted."""

RowAddress = NewType("RowAddress", int)
"""``fragment_id << 32 | row_offset``: where a row lies."""

RowId = NewType("RowId", int)
"""The stable name of a row in a table with stable row ids; else the same number as its address."""

DatasetVersion = NewType("DatasetVersion", int)


def row_address(fragment: FragmentId, offset: RowOffset) -> RowAddress:
    """Return the address of row ``offset`` of ``fragment``."""
    return RowAddress(fragment << 32 | offset)


def align_up(position: int, alignment: int) -> int:
    """Return the least multiple of ``alignment`` that is at or after ``position``."""
    return -(-position // alignment) * alignment


def bytes_for_bits(bits: int) -> int:
    """Return how many bytes hold ``bits`` bits."""
    return (bits + 7) // 8
