"""Choose the fragments that a compaction rewrites, and group them.  Pure.

Fragments that follow one another in the table and want to be rewritten make a *bin*; a fragment that
does not, or that other indices cover than its neighbour, ends it.  A bin is cut as soon as it has
enough rows for a fragment, if what is left has, too.  A bin of one fragment is worth nothing unless
that fragment has deleted rows to lose.

A fragment that reached ``max_bytes_per_file`` is full, however few rows it has.  A bin that would become as many files
as it has, and has no deleted rows to lose, is left as it is: the next compaction would rewrite it again.

Source: `plan_compaction` in rust/lance/src/dataset/optimize.rs, Lance repository; measured on
pylance 14.0.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pennon.core.units import FragmentId
from pennon.ops.compact.options import CompactOptions
from pennon.table.fragment import Fragment
from pennon.table.indices import Index


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fragment that may be rewritten; ``alone`` if it is worth it without neighbours."""

    fragment: Fragment
    live_rows: int
    alone: bool
    indices: frozenset[str]

    @property
    def size_bytes(self) -> int:
        """Return the size of its data files, as far as the manifest says it."""
        return _size_bytes(self.fragment)


def choose(
    fragments: Iterable[tuple[Fragment, int, int]],
    indices: Sequence[Index],
    options: CompactOptions,
) -> list[list[Candidate]]:
    """Return the bins to rewrite, in the order of the table.

    ``fragments``: each with its physical rows and its live rows.
    """
    covered = {index.uuid: index.fragment_ids for index in indices}
    bins = [
        piece
        for each in _bins(fragments, covered, options)
        if len(each) > 1 or each[0].alone
        for piece in _cut(each, options.target_rows_per_fragment)
        if any(candidate.alone for candidate in piece) or _has_fewer_files(piece, options)
    ]
    return list(_bounded(bins, options))


def _bins(
    fragments: Iterable[tuple[Fragment, int, int]],
    covered: Mapping[str, frozenset[FragmentId] | None],
    options: CompactOptions,
) -> Iterator[list[Candidate]]:
    excluded = frozenset(options.excluded_fragment_ids)
    current: list[Candidate] = []
    for fragment, physical, live in fragments:
        alone = options.materializes and _is_sparse(physical, live, options)
        wanted = alone or not _is_full(fragment, physical, options)
        known = frozenset(u for u, ids in covered.items() if ids is None or fragment.id in ids)
        wanted = wanted and fragment.id not in excluded
        if current and (not wanted or current[-1].indices != known):
            yield current
            current = []
        if wanted:
            current.append(Candidate(fragment, live, alone, known))
    if current:
        yield current


def _is_full(fragment: Fragment, physical: int, options: CompactOptions) -> bool:
    """Return whether a fragment has as many rows as are wanted, or as many bytes as a file may have."""
    if physical >= options.target_rows_per_fragment:
        return True
    size_bytes = _size_bytes(fragment)
    one_more = size_bytes + size_bytes // max(physical, 1)
    return options.limits().is_full(physical, one_more)


def _has_fewer_files(candidates: list[Candidate], options: CompactOptions) -> bool:
    """Return whether a bin would become fewer files than it has.

    Data files are at most as large as their rows in memory, by which files are cut: so there may be more.
    """
    rows = sum(candidate.live_rows for candidate in candidates)
    size_bytes = sum(candidate.size_bytes for candidate in candidates)
    row_bytes = size_bytes / max(rows, 1)
    most = options.limits().most_bytes(row_bytes)
    files = sum(
        max(math.ceil(share * row_bytes / most), 1)
        for share in even_shares(rows, options.target_rows_per_fragment)
    )
    return files < sum(len(candidate.fragment.files) for candidate in candidates)


def _size_bytes(fragment: Fragment) -> int:
    return sum(file.size_bytes or 0 for file in fragment.files)


def _is_sparse(physical: int, live: int, options: CompactOptions) -> bool:
    share = (physical - live) / physical if physical else 0.0
    return share > options.materialize_deletions_threshold


def _cut(candidates: list[Candidate], target_rows: int) -> Iterator[list[Candidate]]:
    """Cut a bin so that each piece has rows for a fragment."""
    left = sum(candidate.live_rows for candidate in candidates)
    piece: list[Candidate] = []
    rows = 0
    for candidate in candidates:
        piece.append(candidate)
        rows += candidate.live_rows
        if rows >= target_rows and left - rows >= target_rows:
            yield piece
            left -= rows
            piece, rows = [], 0
    if piece:
        yield piece


def _bounded(bins: Iterable[list[Candidate]], options: CompactOptions) -> Iterator[list[Candidate]]:
    """Yield bins until the next one would be more than one compaction may take on."""
    fragments = rows = size_bytes = 0
    for each in bins:
        fragments += len(each)
        rows += sum(candidate.live_rows for candidate in each)
        size_bytes += sum(candidate.size_bytes for candidate in each)
        if (
            fragments > (options.max_source_fragments or fragments)
            or rows > (options.max_source_rows or rows)
            or size_bytes > (options.max_source_bytes or size_bytes)
        ):
            return
        yield each


def even_shares(rows: int, target_rows: int) -> list[int]:
    """Return how many rows each new file gets: all about as many, and none fewer than the target.

    A remainder would make a small file that the next compaction takes up again.
    """
    files = max(rows // target_rows, 1)
    least, more = divmod(rows, files)
    return [least + 1] * more + [least] * (files - more) if rows else []
