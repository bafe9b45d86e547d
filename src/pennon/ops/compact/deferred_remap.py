"""Compactions that leave the indices as they are: the fragment reuse index says where rows are now.

Its next version goes behind those that it has.  Where two compactions write one at a time, the second reads what
the first wrote and puts its own behind that.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pennon.index.row_sets_wire import serialize_treemap
from pennon.scan.plan.moved_rows import read_reuse
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import ExternalFile, Fragment
from pennon.table.fragment_reuse import FragmentDigest, ReuseGroup, ReuseVersion
from pennon.table.fragment_reuse_wire import (
    external_details,
    inline_details,
    serialize_reuse_versions,
)
from pennon.table.indices import FRAGMENT_REUSE, SYSTEM, Index
from pennon.table.indices_wire import parse_indices, rewritten
from pennon.table.manifest import Manifest
from pennon.table.operations import DeferredRemap

_MOST_INLINE: Final = 200 * 1024
"""More than this is a file of its own, as pylance writes it."""
_FILE: Final = "details.binpb"
_URL: Final = "/lance.table.FragmentReuseIndexDetails"


def kept_rows(snapshot: Snapshot, fragments: Sequence[Fragment]) -> bytes:
    """Return the addresses of the rows of fragments that are not deleted, as a treemap."""
    found = [np.empty(0, np.uint64)]
    for fragment in fragments:
        live = FragmentReader(snapshot, fragment).live_rows()
        offsets = live.between(0, live.count).physical().astype(np.uint64)
        found.append(offsets | np.uint64(fragment.id << 32))
    return serialize_treemap(np.sort(np.concatenate(found)))


def reuse_group(kept: bytes, old: Sequence[Fragment], new: Sequence[Fragment]) -> ReuseGroup:
    """Return what became of fragments."""
    return ReuseGroup(kept, tuple(map(_digest, old)), tuple(map(_digest, new)))


def _digest(fragment: Fragment) -> FragmentDigest:
    deleted = fragment.num_deleted_rows or 0
    return FragmentDigest(fragment.id, fragment.physical_rows or 0, deleted)


def deferred_remap(snapshot: Snapshot, groups: Sequence[ReuseGroup]) -> DeferredRemap | None:
    """Return how the indices of the newest version go on; None where there are none.

    Writes the versions into a file, if they are many.
    """
    indices = parse_indices(snapshot.manifest.indices)
    if all(index.name in SYSTEM for index in indices):
        return None
    before = next((index for index in indices if index.name == FRAGMENT_REUSE), None)
    versions = () if before is None else read_reuse(snapshot, before)
    named = frozenset() if before is None else before.fragment_ids or frozenset()
    version = ReuseVersion(snapshot.manifest.version, tuple(groups))
    entry = Index(
        uuid=str(uuid.uuid4()),
        name=FRAGMENT_REUSE,
        field_ids=(),
        fragment_ids=named.union(each.id for group in groups for each in group.new),
        dataset_version=snapshot.manifest.version,
        created_at_ms=time.time_ns() // 1_000_000,
    )
    details = _details(snapshot, entry, (*versions, version))
    entry = rewritten(replace(entry, details=(_URL, details)))
    return DeferredRemap(entry, None if before is None else before.uuid)


def _details(snapshot: Snapshot, entry: Index, versions: Sequence[ReuseVersion]) -> bytes:
    content = serialize_reuse_versions(versions)
    if len(content) <= _MOST_INLINE:
        return inline_details(content)
    snapshot.store.put(f"{entry.folder}/{_FILE}", content)
    return external_details(ExternalFile(_FILE, 0, len(content)))


def entry_id(manifest: Manifest) -> str | None:
    """Return the uuid of the fragment reuse index of a version; None if it has none."""
    indices = parse_indices(manifest.indices)
    return next((index.uuid for index in indices if index.name == FRAGMENT_REUSE), None)
