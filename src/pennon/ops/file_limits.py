"""When a data file is full, and what a writer may hold in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pennon.core.units import MIB
from pennon.errors import ArgumentError

MAX_ROWS_PER_FILE: Final = 1024 * 1024
MAX_BYTES_PER_FILE: Final = 90 * 1024 * MIB
MAX_ROWS_PER_GROUP: Final = 1024
MIN_ROWS_PER_FILE: Final = 1024
MIN_BYTES_PER_FILE: Final = 8 * MIB


@dataclass(frozen=True, slots=True)
class FileLimits:
    """When a data file is full, and what a writer may hold in memory.

    A limit of bytes that is smaller than a row must not make a file of every row: no file ends for
    its bytes before it has 1024 rows or 8 MiB.
    """

    max_rows: int = MAX_ROWS_PER_FILE
    max_bytes: int = MAX_BYTES_PER_FILE
    data_cache_bytes: int | None = None
    max_page_bytes: int | None = None
    max_rows_per_group: int = MAX_ROWS_PER_GROUP
    rows_per_zone: int | None = None
    """Files of version 2.0 get zone maps of so many rows a zone."""

    def __post_init__(self) -> None:
        """Refuse limits that no file could keep."""
        limits = {
            "max_rows_per_file": self.max_rows,
            "max_bytes_per_file": self.max_bytes,
            "max_rows_per_group": self.max_rows_per_group,
        }
        for name, value in limits.items():
            if value < 1:
                message = f"{name} must be at least 1, got {value}"
                raise ArgumentError(message)

    def of_whole_groups(self) -> FileLimits:
        """Return the limits for files of row groups: a file ends where a row group does."""
        group = min(self.max_rows_per_group, self.max_rows)
        rows = -(-self.max_rows // group) * group
        return replace(self, max_rows=rows, max_rows_per_group=group)

    def is_full(self, rows: int, size_bytes: int) -> bool:
        """Return whether a file of so many rows and bytes has no room for another row."""
        if rows < MIN_ROWS_PER_FILE and size_bytes < MIN_BYTES_PER_FILE:
            return rows >= self.max_rows
        return rows >= self.max_rows or size_bytes >= self.max_bytes

    def most_bytes(self, row_bytes: float) -> float:
        """Return how many bytes of rows of that size a file has before it ends for them."""
        return max(self.max_bytes, min(MIN_BYTES_PER_FILE, MIN_ROWS_PER_FILE * row_bytes))

    def room(self, rows: int, size_bytes: int, row_bytes: float) -> int:
        """Return how many rows of that size a file has room for, at least 1 unless it is full."""
        least = min(MIN_ROWS_PER_FILE - rows, int((MIN_BYTES_PER_FILE - size_bytes) / row_bytes))
        by_bytes = max(int((self.max_bytes - size_bytes) / row_bytes), least, 1)
        return min(by_bytes, self.max_rows - rows)
