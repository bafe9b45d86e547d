"""Checks of a loader's arguments, and the defaults that depend on its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pennon.core.units import KIB
from pennon.errors import ArgumentError
from pennon.training.table_rows import TableRows

_BLOCK_BYTES: Final = 64 * KIB
"""The size of a block of a remote table: reading it takes hardly longer than waiting for it."""
_LEAST_BLOCKS: Final = 16
"""A batch of a remote store mixes so many blocks at least."""


def default_block_rows(sources: Sequence[TableRows], batch_size: int) -> int:
    """Return 1 if all tables are local, else rows of about 64 KiB, and at most a sixteenth of a batch."""
    if not any(source.dataset.snapshot.is_remote for source in sources):
        return 1
    row_bytes = max(source.about_row_bytes for source in sources)
    return max(min(_BLOCK_BYTES // max(row_bytes, 1), batch_size // _LEAST_BLOCKS), 1)


def check_counts(batch_size: int, rank: int, world_size: int, prefetch: int) -> None:
    """Raise ArgumentError unless the numbers are whole, large enough, and fit together."""
    for name, number, least in (
        ("batch_size", batch_size, 1),
        ("world_size", world_size, 1),
        ("rank", rank, 0),
        ("prefetch", prefetch, 0),
    ):
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            message = f"{name} must be a whole number from {least} on, not {number!r}"
            raise ArgumentError(message)
    if rank >= world_size:
        message = f"rank must be below world_size ({world_size}), not {rank}"
        raise ArgumentError(message)
    if batch_size < world_size:
        message = (
            f"batch_size ({batch_size}) counts the rows of all ranks together; it must be at least "
            f"world_size ({world_size})"
        )
        raise ArgumentError(message)


def check_schemas(sources: Sequence[TableRows]) -> None:
    """Raise ArgumentError unless there is a table, and all tables have the same columns."""
    if not sources:
        message = "no table is given; give at least one"
        raise ArgumentError(message)
    first = sources[0].schema
    for source in sources[1:]:
        if not source.schema.equals(first):
            message = (
                f"tables that are mixed must have the same columns: {source.dataset.uri} has {source.schema.names}, "
                f"{sources[0].dataset.uri} has {first.names}, or their types differ; choose columns="
            )
            raise ArgumentError(message)


def check_seed(seed: int) -> None:
    """Raise ArgumentError unless a seed is a whole number."""
    if not isinstance(seed, int) or isinstance(seed, bool):
        message = f"seed must be a whole number, not {seed!r}"
        raise ArgumentError(message)
