"""Judging a transaction by what was committed since it was planned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import Final

from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import PoolSpec, map_in_order
from pennon.core.units import MIB, DatasetVersion, FieldId, FragmentId
from pennon.errors import (
    FormatError,
    IncompatibleConflict,
    LanceError,
    NotFoundError,
    RetryableConflict,
)
from pennon.table.commit.new_files import check_new_files
from pennon.table.commit.put_manifest import CommitStore
from pennon.table.commit.rebase import (
    Affected,
    check_adds_no_rows,
    check_compatible,
    rebase_deletions,
    same_intent,
)
from pennon.table.flags import check_writable
from pennon.table.manifest import Manifest
from pennon.table.naming import transaction_path
from pennon.table.operations import Append
from pennon.table.transaction import Transaction
from pennon.table.transaction_wire import read_transaction, serialize_transaction
from pennon.table.versions import ManifestLocation, read_manifest_at

_AHEAD_BYTES: Final = 8 * MIB
"""So much of manifests that are to be judged is read ahead; in memory they are several times as large."""


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """The transaction to commit, its bytes, and the rows that it takes away."""

    transaction: Transaction
    wire: bytes
    affected: Affected
    adds_keys: bool = False
    dropped: set[FieldId] = field(default_factory=set)
    """Fields of the new files that a version judged so far does not have."""
    pauses: int = 0
    """How often the transaction's file was given a new name."""

    @property
    def file_name(self) -> str:
        """Return the name of the transaction's file."""
        name = self.transaction.file_name
        return f"{name.removesuffix('.txn')}-{self.pauses}.txn" if self.pauses else name

    def with_new_file(self) -> PendingCommit:
        """Return the same with another file: a clean-up may be about to delete the one that was written long ago."""
        return replace(self, pauses=self.pauses + 1)

    def on(
        self, store: CommitStore, head: Manifest, shared: frozenset[FragmentId]
    ) -> PendingCommit:
        """Return what is to be committed on top of ``head``."""
        if not shared:
            return self
        rebased = rebase_deletions(store, head, self.transaction, self.affected, shared)
        if rebased is self.transaction:
            return self
        return replace(self, transaction=rebased, wire=serialize_transaction(rebased))

    def put_file(self, store: CommitStore) -> None:
        """Write the transaction's file, which readers do not see until a manifest names it."""
        store.put(transaction_path(self.file_name), self.wire)

    def create_file(self, store: CommitStore) -> bool:
        """Write the transaction's file if there is none of its name; return whether that was done."""
        try:
            store.put_if_absent(transaction_path(self.file_name), self.wire)
        except LanceError:
            return False  # `put_file` says what is wrong, if it still is
        return True

    def check_files(self, store: CommitStore, head: Manifest | None) -> None:
        """Write the transaction's file, whose time is now by the store's clock, and check the files it names.

        Raises what `check_new_files` raises.
        """
        self.put_file(store)
        now = store.info(transaction_path(self.file_name)).modified
        check_new_files(store, self.transaction.operation, head, now)


def judge_newer(
    store: CommitStore, mine: PendingCommit, judged: int, location: ManifestLocation, head: Manifest
) -> Manifest | frozenset[FragmentId]:
    """Judge the versions after ``judged``; return the one that is our own commit, if any is.

    Else return the fragments of which others deleted rows, too.
    """
    if head.version < judged:
        message = f"version {judged} was read, but {head.version} is the newest: another table?"
        raise NotFoundError(message)
    shared: frozenset[FragmentId] = frozenset()
    for manifest, other in _newer(store, judged, location, head):
        if other is not None and (other == mine.wire or same_intent(mine.transaction, other)):
            return manifest
        check_writable(manifest)
        shared |= check_compatible(
            mine.transaction,
            other,
            manifest.version,
            mine.affected,
            manifest.indices,
            manifest.schema,
        )
        if mine.adds_keys and other is not None:
            check_adds_no_rows(other, manifest.version)
        _check_fields_stay(mine, manifest)
    return shared


def _check_fields_stay(mine: PendingCommit, manifest: Manifest) -> None:
    """Raise RetryableConflict if the table gave the id of a field of appended files to another column.

    A column that was dropped leaves its id free once no data file has it, and the next new one takes it.
    """
    operation = mine.transaction.operation
    if not isinstance(operation, Append):
        return  # the others conflict with what adds a column
    files = {file.field_ids for fragment in operation.fragments for file in fragment.files}
    ids = {number for each in files for number in each}
    there = {each.id for each in manifest.schema.walk()}
    again = sorted(mine.dropped & there)
    if again:
        message = (
            f"Commit conflict for version {manifest.version}: field id {again[0]} of the new files was that of "
            "a column that was dropped, and another column has it now; write the rows again"
        )
        raise RetryableConflict(message)
    mine.dropped.update(ids - there)


def _newer(
    store: CommitStore, judged: int, location: ManifestLocation, head: Manifest
) -> Iterator[tuple[Manifest, bytes | None]]:
    """Yield the versions after ``judged`` and what made them; a far store is asked for several at once."""

    def read(version: DatasetVersion) -> tuple[Manifest, bytes | None]:
        manifest = head if version == head.version else _read_newer(store, location, version)
        return manifest, read_transaction(store, manifest)

    versions = map(DatasetVersion, range(judged + 1, head.version + 1))
    limits, size_bytes = store.limits, location.size_bytes
    if limits is None or size_bytes is None:
        return map(read, versions)
    pool_spec = PoolSpec.reads(limits.concurrency)
    return map_in_order(read, versions, lambda _: size_bytes, _AHEAD_BYTES, pool_spec)


def _read_newer(store: CommitStore, head: ManifestLocation, version: DatasetVersion) -> Manifest:
    """Read a version below the head; one that was cleaned up cannot be judged any more."""
    path = head.naming.manifest_path(version)
    try:
        return read_manifest_at(store, replace(head, version=version, path=path, size_bytes=None))
    except (NotFoundError, FormatError) as error:
        message = f"version {version}, before the newest {head.version}, cannot be judged: {error}"
        raise IncompatibleConflict(message) from error


def check_same_table(
    store: CommitStore, base: Manifest, location: ManifestLocation, head: Manifest
) -> None:
    """Raise IncompatibleConflict if the table is not the one that ``base`` was read from.

    A table that was dropped and made anew under the same name has versions of the same numbers.
    """
    if base.version > head.version:
        message = (
            f"version {base.version} was read, but {head.version} is the newest: another table?"
        )
        raise NotFoundError(message)
    try:
        now = head if base.version == head.version else _read_newer(store, location, base.version)
    except IncompatibleConflict:
        return  # cleaned up
    if _signs(now) != _signs(base):
        message = (
            f"version {base.version} is not the one that was read: the table was dropped and made "
            "anew; open it again"
        )
        raise IncompatibleConflict(message)


def _signs(manifest: Manifest) -> tuple[object, ...]:
    return manifest.timestamp_ns, manifest.transaction_file, manifest.transaction
