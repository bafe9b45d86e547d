"""Committing what an operation planned and wrote: the only place that makes the options of a commit.

An operation says what it does and how that differs from the rule; retries, the names of manifests, row
counts that old writers left out, and dictionaries of version 0.1 are seen to here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa

from pennon.core.units import DatasetVersion, FieldId
from pennon.io.store import Store
from pennon.ops.dictionaries import dictionaries_of
from pennon.ops.held import held
from pennon.ops.row_counts import counted
from pennon.scan.snapshot import Snapshot
from pennon.schema.version import V0_1, FileVersion
from pennon.table.commit.loop import commit, commit_detached, put_behind
from pennon.table.commit.new_files import fragments_of
from pennon.table.commit.options import DEFAULT_POLICY, CommitOptions, CommitPolicy
from pennon.table.commit.rebase import Affected, NewDeletions
from pennon.table.fragment import Fragment
from pennon.table.fragments import file_versions
from pennon.table.manifest import Manifest
from pennon.table.operations import Delete, Operation, Overwrite, Restore, Update
from pennon.table.transaction import Transaction
from pennon.table.versions import read_manifest


def commit_on(
    snapshot: Snapshot,
    operation: Operation,
    *,
    properties: Mapping[str, str] | None = None,
    planned_ns: int | None = None,
    adds_keys: bool = False,
    keeps_rows: bool = False,
) -> Manifest:
    """Commit an operation that was planned on a version of a table, and return the version made.

    Another writer's change of other rows of the same fragments does not stand in the way: which rows a
    delete or an update takes away is then read from its deletion files.  ``planned_ns``: when it was planned,
    in nanoseconds since 1970; the files of a job that took long are looked for.  ``adds_keys``: it adds
    rows because nobody had their keys.  ``keeps_rows``: a merge moves rows of the table to new fragments.
    Raises what `pennon.table.commit.loop.commit` raises.
    """
    manifest = snapshot.manifest
    affected = None
    if isinstance(operation, Delete | Update):
        affected = NewDeletions(snapshot.store, manifest, operation)
    return commit_transaction(
        snapshot.store,
        Transaction(manifest.version, operation, properties=dict(properties or {})),
        affected=affected,
        base=manifest,
        planned_ns=planned_ns,
        adds_keys=adds_keys,
        keeps_rows=keeps_rows,
    )


def commit_transaction(
    store: Store,
    transaction: Transaction,
    policy: CommitPolicy = DEFAULT_POLICY,
    *,
    affected: Affected | None = None,
    base: Manifest | None = None,
    planned_ns: int | None = None,
    adds_keys: bool = False,
    file_version: FileVersion | None = None,
    keeps_rows: bool = False,
    past: Manifest | None = None,
    counted_in: Store | None = None,
    detached: bool = False,
) -> Manifest:
    """Commit a transaction to the table in ``store``, and return the version made.

    ``base``: the version that was planned on; if the table has another of its number, it is another
    table.  ``file_version``: that of the data files of a new or overwritten table.  ``keeps_rows``: an
    overwrite or a merge brings ids and versions of the table's own rows along.  ``past``: the version that a clone
    begins with, whose rows are counted in the store ``counted_in``.  ``detached``: in no line of
    versions.  The others are those of `commit_on`, and so is what it raises.
    """
    options = CommitOptions(
        policy,
        file_version=file_version,
        complete=_counted_by(counted_in or store),
        dictionaries=_dictionaries_of(store, transaction, base),
        past=past,
        keeps_rows=keeps_rows,
        adds_keys=adds_keys,
        base=base,
        planned_ns=planned_ns,
    )
    if detached:
        return commit_detached(store, transaction, options)
    if isinstance(transaction.operation, Restore):
        with held(store, transaction.operation.version) as hold:
            return commit(store, transaction, replace(options, before_again=hold.renew))
    return commit(store, transaction, options, affected)


def commit_repaired(
    snapshot: Snapshot, repaired: Manifest, properties: Mapping[str, str]
) -> Manifest:
    """Commit what a repair made of a version, and return the version made.

    To others it is an overwrite, which no change of theirs follows unseen.  Raises RetryableConflict if another
    writer has committed since the version.
    """
    transaction = _of_repair(snapshot.manifest.version, repaired, properties)
    options = CommitOptions(
        CommitPolicy(max_retries=0),
        complete=_counted_by(snapshot.store),
        dictionaries=repaired.dictionaries,
        base=snapshot.manifest,
        repaired=repaired,
    )
    return commit(snapshot.store, transaction, options)


def commit_behind(
    snapshot: Snapshot, repaired: Manifest, newest: int, properties: Mapping[str, str]
) -> Manifest:
    """Commit a version behind manifests that cannot be read, the last of them of version ``newest``.

    Raises RetryableConflict if another writer makes the version, CommitStateUnknown if the store did not say whether
    it landed.
    """
    transaction = _of_repair(newest, repaired, properties)
    options = CommitOptions(
        complete=_counted_by(snapshot.store),
        dictionaries=repaired.dictionaries,
        repaired=repaired,
    )
    return put_behind(
        snapshot.store, transaction, replace(repaired, version=DatasetVersion(newest)), options
    )


def _of_repair(read_version: int, repaired: Manifest, properties: Mapping[str, str]) -> Transaction:
    overwrite = Overwrite(
        tuple(repaired.fragments), repaired.schema, fields_wire=repaired.fields_wire
    )
    return Transaction(DatasetVersion(read_version), overwrite, properties=dict(properties))


def _counted_by(store: Store) -> Callable[[Fragment], Fragment]:
    """Return what gives fragments of the table in ``store`` their counts."""
    snapshots: list[Snapshot] = []

    def count(fragment: Fragment) -> Fragment:
        if not snapshots:
            snapshots.append(Snapshot(store, read_manifest(store)))
        return counted(snapshots[0], fragment)

    return count


def _dictionaries_of(
    store: Store, transaction: Transaction, base: Manifest | None
) -> Mapping[FieldId, pa.Array]:
    """Return the dictionaries that a commit gives a table; only files of version 0.1 have any."""
    if V0_1 not in file_versions(fragments_of(transaction.operation)):
        return {}
    return dictionaries_of(store, transaction, base)
