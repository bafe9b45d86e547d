"""Options of a commit: what its caller may choose, what its operation needs, and the clock that it goes by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Any, Final

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.schema.version import FileVersion
from pennon.table.apply import ApplyContext, Complete
from pennon.table.commit.clock import SYSTEM_CLOCK, Clock
from pennon.table.commit.put_manifest import CommitStore
from pennon.table.manifest import Manifest
from pennon.table.naming import Naming
from pennon.table.row_ids.decode_wire import read_sequence

LONG_AGO: Final = 0
"""The ``planned_ns`` of a job that may have begun at any time: its files are looked for."""


@dataclass(frozen=True, slots=True)
class CommitPolicy:
    """Options of a commit that callers may choose.

    ``max_retries`` is how often the race for a version may be lost; an overwrite with 0 retries is
    strict: nobody may have committed since its read version.  After ``timeout_s`` seconds no further
    attempt is made.  ``naming`` and ``stable_row_ids`` count for a new table.
    """

    max_retries: int = 20
    timeout_s: float | None = None
    naming: Naming = Naming.V2
    stable_row_ids: bool = False


DEFAULT_POLICY: Final = CommitPolicy()


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """Options of a commit.

    ``file_version`` counts for a new or overwritten table.  ``complete`` gives the row
    counts of fragments that a writer before 0.8.15 left out, ``dictionaries`` the values of those of
    an overwrite with files of version 0.1, ``past`` the version that a clone names.  ``keeps_rows``: an
    overwrite or a merge brings ids and versions of the table's own rows along.  ``adds_keys``: rows
    are added because no row had their keys, so nobody else may have added any since.  ``base`` is the
    version that was planned on: if the table has another of its number, it is another table.
    ``planned_ns`` is when the job began (nanoseconds since 1970; 0: long ago): the files of an old one
    are looked for.  ``before_again`` is called before each attempt but the first.  ``repaired`` is what a repair made of the version that was planned on: an overwrite then keeps
    all else that the version has.
    """

    policy: CommitPolicy = DEFAULT_POLICY
    file_version: FileVersion | None = None
    complete: Complete | None = None
    dictionaries: Mapping[FieldId, pa.Array[Any]] = field(default_factory=dict)
    past: Manifest | None = None
    keeps_rows: bool = False
    adds_keys: bool = False
    base: Manifest | None = None
    planned_ns: int | None = None
    repaired: Manifest | None = None
    before_again: Callable[[], None] | None = None
    clock: Clock = SYSTEM_CLOCK

    def apply_context(self, store: CommitStore) -> ApplyContext:
        """Return what the manifest of an attempt takes from here."""
        return ApplyContext(
            self.clock.now_ns(),
            self.policy.stable_row_ids,
            self.file_version,
            self.complete,
            self.dictionaries,
            self.past,
            partial(read_sequence, store),
            self.keeps_rows,
            self.repaired,
        )
