"""Row counts of fragments whose writer left them out, or counted wrongly (Lance before 0.8.15).

Whoever commits on top of such a table must put right counts into the new manifest, so the files are
asked.
"""

from __future__ import annotations

from dataclasses import replace

from pennon.errors import ArgumentError
from pennon.io.store import Store
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment
from pennon.table.operations import DataReplacement
from pennon.table.transaction import Transaction
from pennon.table.versions import read_manifest


def counted(snapshot: Snapshot, fragment: Fragment) -> Fragment:
    """Return a fragment with the counts that its files give."""
    rows = FragmentReader(snapshot, fragment).physical_rows()
    deletion = fragment.deletion_file
    if deletion is not None:
        deletion = replace(deletion, num_deleted_rows=len(snapshot.deleted(fragment)))
    return replace(fragment, physical_rows=rows, deletion_file=deletion)


def check_replacements(store: Store, transaction: Transaction) -> None:
    """Raise ArgumentError if a file would replace columns of another number of rows."""
    operation = transaction.operation
    if not isinstance(operation, DataReplacement):
        return
    snapshot = Snapshot(store, read_manifest(store, transaction.read_version))
    for each in operation.replacements:
        fragment = snapshot.manifest.fragment(each.fragment_id)
        if fragment is None or each.file.base_id is not None:
            continue
        rows = FragmentReader(snapshot, fragment).physical_rows()
        found = snapshot.open_file(each.file).data.num_rows
        if found != rows:
            message = (
                f"{each.file.path} has {found} rows, but fragment {fragment.id}, whose columns it "
                f"would replace, has {rows}"
            )
            raise ArgumentError(message)


def completed(snapshot: Snapshot, fragment: Fragment) -> Fragment:
    """Return a fragment with all its counts; files are asked where the manifest is silent.

    And where no row would live: a wrong count would take away living rows.
    """
    live = fragment.num_rows
    is_known = live is not None and (live > 0 or fragment.deletion_file is None)
    return fragment if is_known else counted(snapshot, fragment)
