"""The plan of a clustering: groups of fragments that are sorted together, and the number of their files.

Fragments that other indices cover stay apart, as in a compaction: an index goes on to cover whole fragments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pennon.ops.cluster.order import RowOrder
from pennon.ops.cluster.task import SLICE_BYTES, Clustering
from pennon.ops.compact.options import CompactOptions
from pennon.ops.compact.task import task_of
from pennon.ops.row_counts import completed
from pennon.scan.read.tasks import live_row_count
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.width import row_bytes
from pennon.table.fragment import Fragment
from pennon.table.indices import SYSTEM
from pennon.table.indices_wire import parse_indices

_ROOM: Final = 8 / 7
"""How much fuller than their target files are planned: none is to fall short of it by a sample's chance."""
_DECODED: Final = 2
"""How much larger rows are in memory than in files, where nothing else is known."""


def plan_clusterings(
    snapshot: Snapshot, columns: Sequence[str], options: CompactOptions, *, curved: bool
) -> list[Clustering]:
    """Plan to put the rows of all fragments that are not excluded in the order of columns.

    ``curved``: along a Z-curve, else the first column goes before the second.
    Raises ArgumentError or UnsupportedError for columns that make no order, and for files that are not
    written.
    """
    manifest = snapshot.manifest
    order = RowOrder.by(manifest.schema, columns)
    excluded = frozenset(options.excluded_fragment_ids)
    users = [each for each in parse_indices(manifest.indices) if each.name not in SYSTEM]
    alike: dict[frozenset[str], list[Fragment]] = {}
    for fragment in manifest.fragments:
        if fragment.id not in excluded:
            known = frozenset(
                each.uuid
                for each in users
                if each.fragment_ids is None or fragment.id in each.fragment_ids
            )
            alike.setdefault(known, []).append(completed(snapshot, fragment))
    return [_clustering(snapshot, order, options, each, curved) for each in alike.values()]


def _clustering(
    snapshot: Snapshot,
    order: RowOrder,
    options: CompactOptions,
    fragments: Sequence[Fragment],
    curved: bool,
) -> Clustering:
    task = task_of(snapshot, options, [fragments])
    rows = sum(live_row_count(snapshot, each) for each in fragments)
    physical = sum(each.physical_rows or 0 for each in fragments)
    stored = sum(file.size_bytes or 0 for each in fragments for file in each.files)
    fixed = row_bytes(schema_to_arrow(snapshot.manifest.schema))
    size_bytes = rows * max(_DECODED * stored / max(physical, 1), fixed)
    files = max(
        int(rows / (_ROOM * options.target_rows_per_fragment)),
        -int(-size_bytes // task.write.limits.max_bytes),
        1,
    )
    slices = max(-int(-size_bytes // (SLICE_BYTES * files)), 1)
    return Clustering(
        snapshot, order, task.write, tuple(fragments), rows, files, slices, curved=curved
    )
