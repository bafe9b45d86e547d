"""The old and new fragments of compactions that left the indices unchanged.

An index goes on naming the rows of fragments that are gone, until somebody makes it anew.  The system index
`FRAGMENT_REUSE` has a version for each such compaction, in order; a fragment id is never given twice, so that
whoever follows all of them from the first on comes from any fragment to the one that is there now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FragmentId


@dataclass(frozen=True, slots=True)
class FragmentDigest:
    """A fragment, as it was when it was rewritten."""

    id: FragmentId
    physical_rows: int
    deleted_rows: int = 0


@dataclass(frozen=True, slots=True)
class ReuseGroup:
    """Old fragments, and the new ones that took their places.

    ``kept`` is a treemap of the addresses of the rows that were not deleted.  In the order of the old fragments
    they are the rows of the new ones, one after the other.
    """

    kept: bytes = field(repr=False)
    old: tuple[FragmentDigest, ...]
    new: tuple[FragmentDigest, ...]


@dataclass(frozen=True, slots=True)
class ReuseVersion:
    """The effect of one compaction; ``dataset_version`` is the version on which it was committed."""

    dataset_version: int
    groups: tuple[ReuseGroup, ...]


def covered_now(
    fragment_ids: frozenset[FragmentId], versions: Iterable[ReuseVersion]
) -> frozenset[FragmentId]:
    """Return the fragments that an index covers that says it covers ``fragment_ids``.

    New ones take the places of old ones, if it covers all of these; else nobody knows which rows it has.
    """
    covered = fragment_ids
    for version in versions:
        for group in version.groups:
            old = {each.id for each in group.old}
            is_whole = bool(old) and covered.issuperset(old)
            covered -= old
            if is_whole:
                covered |= {each.id for each in group.new}
    return covered
