"""Row counts of fragments whose writer left them out, or counted wrongly (Lance before 0.8.15).

Whoever commits on top of such a table must put right counts into the new manifest, so the files are
asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pennon.io.store import Store
from pennon.scan.fragment_reader import FragmentReader
from pennon.scan.snapshot import Snapshot
from pennon.table.manifest import Fragment
from pennon.table.versions import read_manifest


def counted_by(store: Store) -> Callable[[Fragment], Fragment]:
    """Return what gives fragments of the table in ``store`` their counts."""
    snapshots: list[Snapshot] = []

    def count(fragment: Fragment) -> Fragment:
        if not snapshots:
            snapshots.append(Snapshot(store, read_manifest(store)))
        (snapshot,) = snapshots
        rows = FragmentReader(snapshot, fragment).physical_rows()
        deletion = fragment.deletion_file
        if deletion is not None:
            deleted = len(snapshot.deleted(fragment))
            deletion = replace(deletion, num_deleted_rows=deleted)
        return replace(fragment, physical_rows=rows, deletion_file=deletion)

    return count
