"""The indices that a new version keeps, and the fragments that they cover there.

Source: `Transaction::build_manifest` in rust/lance/src/dataset/transaction.rs, Lance repository.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from pennon.core.units import FieldId, FragmentId
from pennon.errors import ArgumentError
from pennon.schema.field import Schema
from pennon.table.fragment import Fragment
from pennon.table.indices import FRAGMENT_REUSE, SYSTEM, Index
from pennon.table.indices_wire import covering, parse_indices, serialize_indices
from pennon.table.manifest import WriterVersion
from pennon.table.operations import RewriteGroup

_RIGHT_BITMAPS = (0, 8, 15)


def relevant_indices(
    indices: Sequence[Index], schema: Schema, fragments: Iterable[Fragment]
) -> tuple[Index, ...]:
    """Leave out indices on fields that are gone, and segments that cover no fragment any more.

    Of an index whose every segment covers nothing one segment stays, the oldest, so that its
    definition is not lost; but no vector index, which is nothing without rows.  Where there is a
    fragment reuse index, a segment may cover fragments that took the places of those that it names.
    """
    if not indices:
        return ()
    known = {field.id for field in schema.walk()}
    alive = frozenset(fragment.id for fragment in fragments)
    usable = [i for i in indices if i.name in SYSTEM or known.issuperset(i.field_ids)]
    if any(index.name == FRAGMENT_REUSE for index in usable):
        return tuple(usable)
    named: dict[str, list[Index]] = defaultdict(list)
    for index in usable:
        named[index.name].append(index)
    kept = {index.uuid for group in named.values() for index in _kept(group, alive)}
    return tuple(index for index in usable if index.uuid in kept)


def _kept(segments: list[Index], alive: frozenset[FragmentId]) -> list[Index]:
    full = [index for index in segments if index.fragment_ids and index.fragment_ids & alive]
    if full:
        return full
    oldest = min(segments, key=lambda index: index.dataset_version)
    return [] if oldest.is_vector else [oldest]


def believable(section: bytes, writer: WriterVersion | None) -> bytes:
    """Return the IndexSection of a manifest by ``writer`` so that readers may believe all it says.

    Lance before 0.8.15 wrote wrong bitmaps, early ones none, and later releases some that overlap,
    which no row can.  Who signs a manifest vouches for them, and to find out what such an index
    covers takes the index itself; so it covers nothing, and readers scan.

    Source: ``migrate_indices`` in rust/lance/src/io/commit.rs, Lance repository; golden v0.8.14
    (corrupt_index), v0.21.0 (bad_index_fragment_bitmap).
    """
    indices = parse_indices(section)
    wrong = {index.name for index in indices if index.fragment_ids is None}
    if writer is None or (writer.library == "lance" and _number(writer) < _RIGHT_BITMAPS):
        wrong.update(index.name for index in indices)
    seen: dict[str, set[FragmentId]] = defaultdict(set)
    for index in indices:
        ids = index.fragment_ids or frozenset()
        if not seen[index.name].isdisjoint(ids):
            wrong.add(index.name)
        seen[index.name].update(ids)
    wrong -= SYSTEM
    if not wrong:
        return section
    return serialize_indices(
        covering(index, frozenset()) if index.name in wrong else index for index in indices
    )


def _number(writer: WriterVersion) -> tuple[int, ...]:
    """Return the numbers of a version; what is no version counts as the first one."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", writer.version)
    return tuple(map(int, found.groups())) if found else (0,)


def prune_fields(
    indices: Iterable[Index],
    unchanged: Iterable[FragmentId],
    fields: Iterable[FieldId],
    schema: Schema,
) -> tuple[Index, ...]:
    """Let the indices on any of the fields cover no fragment but those that did not change.

    A field counts with those around and below it: files name the items of a list, and an index the list.  Fragments
    that are gone are not covered, either: a fragment reuse index may say that one that changed took their place.
    """
    changed, kept = schema.relatives(fields), frozenset(unchanged)
    return tuple(
        covering(index, index.fragment_ids & kept)
        if index.fragment_ids is not None and changed.intersection(index.field_ids)
        else index
        for index in indices
    )


def moved_fragments(
    covered: frozenset[FragmentId], groups: Iterable[RewriteGroup]
) -> frozenset[FragmentId]:
    """Return what an index covers after fragments were rewritten.

    Raises ArgumentError for a group of which it covers some fragments and others not.
    """
    result = set(covered)
    for group in groups:
        old = {fragment.id for fragment in group.old}
        if covered.isdisjoint(old):
            continue
        if not covered.issuperset(old):
            message = "fragments with and without an index cannot be rewritten into one"
            raise ArgumentError(message)
        result -= old
        result |= {fragment.id for fragment in group.new}
    return frozenset(result)
