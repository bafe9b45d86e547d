"""Automatic statistics: a ZONEMAP of each column of plain values, brought up to date by writes and compactions.

A table asks for them by its config.  They are indices like others: pylance's filters ask them, too, and
`optimize_indices` and clean-up know them.  A writer that knows nothing of them leaves its rows uncovered until the next
one comes.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress

from pyarrow import types as t

from pennon.core.units import FieldId
from pennon.errors import ConflictError
from pennon.index.scalar import zone_map
from pennon.ops.commit import commit_on
from pennon.ops.index.build import Builder
from pennon.ops.index.builders import THREADS
from pennon.ops.index.create import build_index, plan_index
from pennon.ops.index.optimize import optimized_segments
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field
from pennon.schema.project import quoted
from pennon.schema.types import storage_type
from pennon.table.indices import Index
from pennon.table.indices_wire import parse_indices
from pennon.table.operations import CreateIndex


def keep_statistics(snapshot: Snapshot, builder: Builder = THREADS) -> Snapshot:
    """Return the version with statistics of all its rows: this one if nothing is missing, else a new one.

    An index of that kind that a column has already serves.  Where another writer stands in the way, the rows stay
    without: a write that has landed does not fail for its statistics.
    """
    known: dict[FieldId, dict[str, list[Index]]] = defaultdict(lambda: defaultdict(list))
    for index in parse_indices(snapshot.manifest.indices):
        if index.type_name == zone_map.KIND.details and len(index.field_ids) == 1:
            known[index.field_ids[0]][index.name].append(index)
    new: list[Index] = []
    removed: list[Index] = []
    for column in snapshot.manifest.schema.fields if snapshot.manifest.fragments else ():
        if not _has_statistics(column):
            continue
        if column.id not in known:
            name = f"{column.name}_statistics"
            build = plan_index(snapshot, quoted(column.name), zone_map.KIND.user_names[0], name, {})
            new.append(build_index(build, builder))
            continue
        segments = next(iter(known[column.id].values()))
        made, gone = optimized_segments(snapshot, segments, 1, builder, retrain=False)
        if made:
            new += [*(each for each in segments if each not in gone), *made]
            removed += gone
    if new:
        with suppress(ConflictError):
            return snapshot.at(commit_on(snapshot, CreateIndex(tuple(new), tuple(removed))))
    return snapshot


def _has_statistics(column: Field) -> bool:
    """Return whether a column has values whose bounds serve: not bytes, which may be large."""
    kind = storage_type(field_to_arrow(column).type)
    is_bytes = t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind)
    return bool(zone_map.KIND.takes(kind) and (t.is_decimal(kind) or not is_bytes))
