"""Making rewritten fragments a version of the table, in two commits.

The first reserves ids for the new fragments, so that they are known in the second, the rewrite.  Both
are judged against the version that the oldest rewrite read: had anybody deleted rows of the old
fragments since, their copies would bring those rows back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pennon.core.units import FragmentId
from pennon.errors import ArgumentError
from pennon.io.store import Store
from pennon.ops.commit import commit_transaction
from pennon.ops.compact.task import Rewritten
from pennon.table.commit.loop import LONG_AGO
from pennon.table.manifest import Manifest
from pennon.table.operations import ReserveFragments, Rewrite, RewriteGroup
from pennon.table.transaction import Transaction


def commit_compact(store: Store, rewritten: Sequence[Rewritten]) -> Manifest:
    """Put new fragments in the place of old ones, and return the version made.

    Raises RetryableConflict if another writer changed one of the old fragments: the compaction is to
    be planned anew.
    """
    _check_distinct(rewritten)
    read_version = min(each.read_version for each in rewritten)
    count = sum(len(each.new) for each in rewritten)
    first = 0
    if count:
        reserving = Transaction(read_version, ReserveFragments(count))
        reserved = commit_transaction(store, reserving, planned_ns=LONG_AGO)
        first = reserved.last_fragment_id - count + 1
    groups = []
    for each in rewritten:
        new = tuple(
            replace(fragment, id=FragmentId(first + number))
            for number, fragment in enumerate(each.new)
        )
        first += len(new)
        groups.append(RewriteGroup(each.old, new))
    transaction = Transaction(read_version, Rewrite(tuple(groups)))
    return commit_transaction(store, transaction, planned_ns=LONG_AGO)


def _check_distinct(rewritten: Sequence[Rewritten]) -> None:
    ids = [fragment.id for each in rewritten for fragment in each.old]
    if len(set(ids)) != len(ids):
        message = f"two results rewrite one fragment: {sorted(ids)[:20]}"
        raise ArgumentError(message)
