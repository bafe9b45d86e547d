"""Write deletion files; drop fragments without live rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.runs import distinct
from pennon.core.thread_pools import PoolSpec, map_in_order
from pennon.core.units import FragmentId
from pennon.ops.rows.find_rows import Rows
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.run.take import check_offsets
from pennon.scan.snapshot import Snapshot
from pennon.table.deletion import write_deletions
from pennon.table.fragment import Fragment

_WRITERS: Final = PoolSpec("deletions", 8)


@dataclass(frozen=True, slots=True)
class Removal:
    """The removal of ``rows`` rows of a fragment; ``left`` is the fragment without them, None if no row is left.

    Which rows they are its deletion file says, and nothing that travels.
    """

    fragment_id: FragmentId
    rows: int
    left: Fragment | None


@dataclass(frozen=True, slots=True)
class Removals:
    """The rows that a commit takes away, as operations name them."""

    updated: tuple[Fragment, ...]
    gone: tuple[FragmentId, ...]
    rows: int

    @classmethod
    def of(cls, removals: Iterable[Removal]) -> Removals:
        """Put the removals of all tasks together."""
        all_of_them = tuple(removals)
        return cls(
            tuple(each.left for each in all_of_them if each.left is not None),
            tuple(each.fragment_id for each in all_of_them if each.left is None),
            sum(each.rows for each in all_of_them),
        )


def rows_at(snapshot: Snapshot, fragment: Fragment, offsets: Int64Array) -> Rows:
    """Return the living ones of the rows at physical offsets, which come in any order.

    Raises OutOfRangeError for a row that the fragment does not have.
    """
    live = FragmentReader(snapshot, fragment).live_rows()
    wanted = distinct(offsets)
    check_offsets(wanted, live.physical_rows, f"fragment {fragment.id}")
    return Rows(fragment, wanted[~live.is_deleted(wanted)])


def remove_each(snapshot: Snapshot, several: Iterable[Rows]) -> Iterator[Removal]:
    """Yield what `remove_rows` does of each fragment; some files are written at a time, for a disk takes its time."""
    work = partial(remove_rows, snapshot)
    with closing(map_in_order(work, several, lambda _: 1, _WRITERS.threads, _WRITERS)) as removals:
        yield from removals


def remove_rows(snapshot: Snapshot, rows: Rows) -> Removal:
    """Write the deletion file of a fragment without some of its living rows.

    It names those that were deleted before, too.  A fragment without living rows needs none.
    """
    fragment = rows.fragment
    offsets = rows.offsets.astype(np.uint32)
    dead = distinct(np.concatenate([snapshot.deleted(fragment).astype(np.uint32), offsets]))
    physical_rows = FragmentReader(snapshot, fragment).physical_rows()
    if len(dead) == physical_rows:
        return Removal(fragment.id, len(offsets), None)
    manifest = snapshot.manifest
    deletion = write_deletions(snapshot.store, fragment.id, manifest.version, dead)
    left = replace(fragment, physical_rows=physical_rows, deletion_file=deletion)
    return Removal(fragment.id, len(offsets), left)
