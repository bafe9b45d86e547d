"""Reading and changing ``__manifest``, while others do.

A change reads the newest version, decides, and commits what it decided only if nobody else changed the table since:
else it begins again.  So no entry is lost, and an id is never given twice.

========================  =====================================================================
change                    commit
========================  =====================================================================
objects are added         an append that is refused if others added rows since; a small file each
any other, or the table   an overwrite that is refused if others committed anything since: one file
has many files            of all rows, as each change of pylance writes it
========================  =====================================================================
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pennon.catalog.manifest_rows import SCHEMA, ManifestRow, ManifestRows, changed, new_rows
from pennon.catalog.object_ids import MANIFEST_FOLDER
from pennon.errors import (
    AlreadyExistsError,
    ConflictError,
    FormatError,
    NotFoundError,
    RetryableConflict,
)
from pennon.io.prefix_store import PrefixStore
from pennon.io.store import Store
from pennon.ops.commit import commit_transaction
from pennon.ops.write import WriteMode, plan_write, transaction_of, write_fragments
from pennon.scan.plan.query import ScanOptions, bind_query, plan_query
from pennon.scan.run.filter import read_query
from pennon.scan.snapshot import Snapshot
from pennon.table.commit.options import CommitPolicy
from pennon.table.versions import read_newest_if_any

_MOST_FRAGMENTS: Final = 32
"""A version with so many files is written anew by the next change."""
_PATIENCE_SECONDS: Final = 120.0
_LONGEST_PAUSE: Final = 0.5
_STRICT: Final = CommitPolicy(max_retries=0)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of ``__manifest``: rows added, ids removed, and other ids for some."""

    added: tuple[ManifestRow, ...] = ()
    removed: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing changes."""
        return not (self.added or self.removed or self.renamed)


@dataclass(frozen=True, slots=True)
class ManifestTable:
    """The table ``__manifest`` in the store ``root``, which need not exist yet."""

    root: Store

    @property
    def store(self) -> Store:
        """Return the store of the table itself."""
        return PrefixStore(self.root, MANIFEST_FOLDER)

    def read(self) -> ManifestRows:
        """Read the newest version; no table has no rows.

        Raises FormatError for a table that is damaged.
        """
        manifest = read_newest_if_any(self.store)
        if manifest is None:
            return ManifestRows.none()
        query = bind_query(Snapshot(self.store, manifest), ScanOptions())
        try:
            table = read_query(plan_query(query))
        except NotFoundError as error:
            message = f"__manifest is damaged: it names a file that is not there: {error.message}"
            raise FormatError(message, where=error.where) from error
        return ManifestRows(table, manifest)

    def change(self, decide: Callable[[ManifestRows], Change]) -> None:
        """Commit what ``decide`` makes of the newest rows; it is asked again after a lost race.

        Raises what ``decide`` raises, RetryableConflict if others are faster for two minutes, and
        CommitStateUnknown if the store did not say whether the change was committed.
        """
        for _ in _attempts():
            rows = self.read()
            change = decide(rows)
            if change.is_empty:
                return
            try:
                self._commit(rows, change)
            except (ConflictError, AlreadyExistsError):
                continue  # another writer was first, or made the table just now
            return
        message = (
            f"other writers of {MANIFEST_FOLDER} were faster for {_PATIENCE_SECONDS:.0f} seconds"
        )
        raise RetryableConflict(message)

    def _commit(self, rows: ManifestRows, change: Change) -> None:
        manifest = rows.manifest
        if manifest is None:
            self._write(new_rows(SCHEMA, change.added), rows, WriteMode.CREATE)
        elif change.removed or change.renamed or len(manifest.fragments) >= _MOST_FRAGMENTS:
            table = changed(rows, change.added, change.removed, change.renamed)
            self._write(table, rows, WriteMode.OVERWRITE)
        else:
            self._write(new_rows(rows.table.schema, change.added), rows, WriteMode.APPEND)

    def _write(self, table: pa.Table, rows: ManifestRows, mode: WriteMode) -> None:
        plan = plan_write(self.store, table.schema, mode, base=rows.manifest)
        fragments = write_fragments(plan.task, table.combine_chunks().to_batches())
        is_append = mode is WriteMode.APPEND
        commit_transaction(
            self.store,
            transaction_of(plan, fragments),
            CommitPolicy() if is_append else _STRICT,
            base=plan.base,
            planned_ns=plan.planned_ns,
            adds_keys=is_append,
            file_version=plan.task.version,
        )


def _attempts() -> Iterator[int]:
    """Yield the number of each attempt, with random pauses between them, until time is over."""
    begun, longest = time.monotonic(), 0.01
    attempt = 0
    while not attempt or time.monotonic() - begun < _PATIENCE_SECONDS:
        yield attempt
        time.sleep(random.uniform(0, longest))  # noqa: S311 - keeps writers apart, and no secret
        longest = min(2 * longest, _LONGEST_PAUSE)
        attempt += 1
