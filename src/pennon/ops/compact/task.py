"""Rewriting the rows of a bin of fragments into new ones; the task pickles.

The results become a version in two commits.  The first reserves ids for the new fragments, so that they
are known in the second, the rewrite.  Both are judged against the version that the oldest rewrite read:
had anybody deleted rows of the old fragments since, their copies would bring those rows back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pennon.core.loggers import MAINTENANCE
from pennon.core.units import FragmentId
from pennon.errors import ArgumentError, FormatError, RetryableConflict, UnsupportedError
from pennon.io.store import Store
from pennon.ops.blob_rows import to_rewrite
from pennon.ops.commit import commit_transaction
from pennon.ops.compact.choose import choose, even_shares
from pennon.ops.compact.deferred_remap import deferred_remap, entry_id, kept_rows, reuse_group
from pennon.ops.compact.moved_indices import moved_indices
from pennon.ops.compact.options import CompactOptions
from pennon.ops.convert import without_hidden_values
from pennon.ops.row_counts import completed
from pennon.ops.row_history import with_history
from pennon.ops.task_wire import parse_numbered_fragments, serialize_numbered_fragments
from pennon.ops.write import WriteMode, WriteTask, plan_write, write_fragments
from pennon.scan.plan.moved_rows import indices_now
from pennon.scan.projection import plan_scan_projection
from pennon.scan.read.execute import READ_AHEAD_BYTES, Scan, read_batches
from pennon.scan.read.tasks import default_batch_rows, live_row_count, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.version import V0_1, FileVersion
from pennon.schema.width import row_bytes
from pennon.table.apply.rows import by_id
from pennon.table.commit.options import LONG_AGO
from pennon.table.fragment import Fragment
from pennon.table.fragment_reuse import ReuseGroup
from pennon.table.indices import SYSTEM, RewrittenIndex
from pennon.table.manifest import Manifest
from pennon.table.operations import ReserveFragments, Rewrite, RewriteGroup
from pennon.table.transaction import Transaction
from pennon.table.versions import read_manifest


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The new fragments of one bin; ``read_version`` is the version that was read.

    ``kept`` are the addresses of the rows that were rewritten, a treemap, if indices stay as they are; None:
    indices by addresses no longer cover them.  ``keeps_order``: the rows of ``new`` are the live rows of ``old`` in
    their order, so that it is known where each of them is now.
    """

    read_version: int
    old: tuple[Fragment, ...]
    new: tuple[Fragment, ...]
    kept: bytes | None = None
    keeps_order: bool = True

    def __post_init__(self) -> None:
        """Refuse to say where rows are that were put in another order."""
        if self.kept is not None and not self.keeps_order:
            message = "rows that were put in another order have no fragment reuse index; compact without defer_index_remap"
            raise ArgumentError(message)


@dataclass(frozen=True, slots=True)
class CompactTask:
    """A task that rewrites bins of fragments of one version; it pickles."""

    snapshot: Snapshot
    options: CompactOptions
    write: WriteTask
    bins: tuple[tuple[Fragment, ...], ...]

    @property
    def count(self) -> int:
        """Return how many bins there are."""
        return len(self.bins)

    def run(self, number: int) -> Rewritten:
        """Rewrite the bin of that number, and return the new fragments, without ids yet.

        Rows keep their order, their stable ids and their versions.
        """
        old = self.bins[number]
        rows = sum(live_row_count(self.snapshot, fragment) for fragment in old)
        new: list[Fragment] = []
        first = 0
        for share in even_shares(rows, self.options.target_rows_per_fragment):
            new += write_fragments(self.write, self._batches(old, first, share))
            first += share
        written = sum(fragment.physical_rows or 0 for fragment in new)
        if written != rows:
            message = f"fragments of {rows} live rows have {written}"
            raise FormatError(message)
        version, new = self.snapshot.manifest.version, with_history(self.snapshot, old, new)
        return Rewritten(version, old, tuple(new), self.kept_of(old))

    def to_bytes(self, answer: Rewritten) -> bytes:
        """Return an answer as a message: the driver knows the old fragments."""
        return serialize_numbered_fragments(answer.old[0].id, answer.new)

    def from_bytes(self, message: bytes) -> Rewritten:
        """Return the answer of a message; raises FormatError."""
        first, new, _ = parse_numbered_fragments(message)
        old = next((each for each in self.bins if each[0].id == first), None)
        if old is None:
            text = f"a task rewrote a bin that begins with fragment {first}; there is none"
            raise FormatError(text)
        return Rewritten(self.snapshot.manifest.version, old, new, self.kept_of(old))

    def kept_of(self, old: Sequence[Fragment]) -> bytes | None:
        """Return what of fragments is rewritten, if indices stay as they are."""
        return kept_rows(self.snapshot, old) if self.options.defer_index_remap else None

    def _batches(
        self, fragments: Sequence[Fragment], first: int, rows: int
    ) -> Iterator[pa.RecordBatch]:
        everything = plan_scan_projection(self.snapshot.manifest.schema, None)
        projection, whole = to_rewrite(self.snapshot, everything)
        tasks = plan_tasks(self.snapshot, fragments, first, rows)
        batch_rows = self.options.batch_size or default_batch_rows(row_bytes(projection.arrow))
        batches = read_batches(
            Scan(self.snapshot, projection, tuple(tasks)),
            batch_rows,
            self.options.io_buffer_size or READ_AHEAD_BYTES,
            may_cut=self.options.batch_size is None,
            by_fragment=False,
        )
        if self.write.version == V0_1:
            return map(without_hidden_values, batches)
        return iter(whole(batches))


def plan_compact(snapshot: Snapshot, options: CompactOptions) -> CompactTask:
    """Plan to compact a version of a table; no bins where there is nothing to gain.

    Raises UnsupportedError for a file version that is not written, and for indices that are to stay as they
    are in a table with stable row ids.
    """
    users = [index for index in indices_now(snapshot) if index.name not in SYSTEM]
    if options.defer_index_remap and snapshot.manifest.has_stable_row_ids:
        message = (
            "defer_index_remap is not for tables with stable row ids: most of their indices stay as they are "
            "anyhow; compact without it"
        )
        raise UnsupportedError(message)
    bins = choose(_counted(snapshot), users, options)
    fragments = [tuple(candidate.fragment for candidate in each) for each in bins]
    return task_of(snapshot, options, fragments)


def task_of(
    snapshot: Snapshot, options: CompactOptions, bins: Iterable[Sequence[Fragment]]
) -> CompactTask:
    """Return the task that rewrites bins that were chosen before."""
    manifest = snapshot.manifest
    asked = options.data_storage_version
    plan = plan_write(
        snapshot.store,
        schema_to_arrow(manifest.schema),
        WriteMode.APPEND,
        base=manifest,
        version=None if asked is None else FileVersion.parse(asked),
        limits=options.limits(),
    )
    write = replace(plan.task, schema=manifest.schema)
    return CompactTask(snapshot, options, write, tuple(map(tuple, bins)))


def _counted(snapshot: Snapshot) -> Iterator[tuple[Fragment, int, int]]:
    """Yield each fragment with its physical and its live rows."""
    for fragment in by_id(snapshot.manifest.fragments).values():
        whole = completed(snapshot, fragment)
        physical = whole.physical_rows or 0
        yield whole, physical, physical - (whole.num_deleted_rows or 0)


def commit_compact(
    store: Store, rewritten: Sequence[Rewritten], properties: Mapping[str, str] | None = None
) -> Manifest:
    """Put new fragments in the place of old ones, and return the version made.

    Indices that name rows by their addresses are written anew, with the new ones; where rows were put in another
    order, such indices cover neither the old fragments nor the new ones, until `optimize_indices`.

    Raises RetryableConflict if another writer changed one of the old fragments: the compaction is to
    be planned anew.
    """
    _check_distinct(rewritten)
    manifest = _commit_rewritten(store, rewritten, properties or {})
    MAINTENANCE.info(
        "%s: version %d has %d fragments in the place of %d",
        store.uri,
        manifest.version,
        sum(len(each.new) for each in rewritten),
        sum(len(each.old) for each in rewritten),
    )
    return manifest


def _commit_rewritten(
    store: Store, rewritten: Sequence[Rewritten], properties: Mapping[str, str]
) -> Manifest:
    read_version = min(each.read_version for each in rewritten)
    count = sum(len(each.new) for each in rewritten)
    first, reserved = 0, None
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
    transaction = Transaction(read_version, Rewrite(tuple(groups)), properties=properties)
    if any(each.kept is None for each in rewritten):
        indices: tuple[RewrittenIndex, ...] = ()
        if all(each.keeps_order for each in rewritten):
            indices = moved_indices(Snapshot(store, read_manifest(store, read_version)), groups)
        mine = replace(transaction, operation=Rewrite(tuple(groups), indices))
        return commit_transaction(store, mine, planned_ns=LONG_AGO)
    moved = [
        reuse_group(each.kept or b"", group.old, group.new)
        for each, group in zip(rewritten, groups, strict=True)
    ]
    head = Snapshot(store, reserved or read_manifest(store))
    return _commit_deferred(head, transaction, groups, moved)


def _commit_deferred(
    head: Snapshot,
    transaction: Transaction,
    groups: Sequence[RewriteGroup],
    moved: Sequence[ReuseGroup],
) -> Manifest:
    """Commit a rewrite that leaves the indices as they are; again, if another one came first."""
    while True:
        rewrite = Rewrite(tuple(groups), deferred=deferred_remap(head, moved))
        mine = replace(transaction, operation=rewrite)
        try:
            return commit_transaction(head.store, mine, planned_ns=LONG_AGO)
        except RetryableConflict:
            newest = head.at(read_manifest(head.store))
            if entry_id(newest.manifest) == entry_id(head.manifest):
                raise
            head = newest


def _check_distinct(rewritten: Sequence[Rewritten]) -> None:
    ids = [fragment.id for each in rewritten for fragment in each.old]
    if len(set(ids)) != len(ids):
        message = f"two results rewrite one fragment: {sorted(ids)[:20]}"
        raise ArgumentError(message)
