"""A table as a stream: its rows first, then what each version changed, fragment by fragment.

A position says what was read.  It goes on from fragment to fragment of one version, and on to the next version::

    version 7, snapshot, 0 fragments     nothing was read yet; the rows of version 7 come first
    version 7, snapshot, 40 fragments    40 fragments of them were read
    version 8, 0 fragments               all of them were; what version 8 changed comes next
    version 8, 2 fragments               two of the fragments that it changed were read

A stream of rows gives out those that versions append.  Rewrites, indices and new columns change no rows.  A version
that deletes or updates rows is refused, or passed over if the rules say so; a stream of changes shows it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeGuard

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import DatasetVersion
from pennon.errors import (
    ArgumentError,
    LanceError,
    NotFoundError,
    SchemaMismatchError,
    UnsupportedError,
)
from pennon.scan.changes.feed import VersionChange, appended_fragments, operation_of
from pennon.scan.changes.fragment_change import FragmentChange
from pennon.scan.changes.version_rows import History, VersionRows
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Schema
from pennon.table.operations import Overwrite, operation_name
from pennon.table.versions import latest_version

_MOST_KNOWN: Final = 2048
"""The number of versions that a stream remembers, each with the fragments that it changed, and no others.

A step that has limits reads at most as many versions, so its parts need no manifest a second time.
"""
_FRAGMENTS, _ROWS, _BYTES = "fragments", "rows", "bytes"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """The next version that a stream reads, and how many fragments of it were read.

    ``is_snapshot``: its rows are read, not what it changed.
    """

    version: int
    fragments: int = 0
    is_snapshot: bool = False

    def to_json(self) -> dict[str, int | bool]:
        """Return the position as JSON that a person can read."""
        found: dict[str, int | bool] = {"version": self.version, _FRAGMENTS: self.fragments}
        return {**found, "snapshot": True} if self.is_snapshot else found

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Position:
        """Return the position that JSON says; raises ArgumentError if it says none."""
        version, fragments = given.get("version"), given.get(_FRAGMENTS, 0)
        if not _is_count(version) or not _is_count(fragments):
            message = f"an offset of a Lance stream has a version and a number of fragments, not {dict(given)}"
            raise ArgumentError(message)
        return cls(version, fragments, bool(given.get("snapshot", False)))


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of data: fragments, the rows that live in them, and the bytes of their files."""

    fragments: int = 0
    rows: int = 0
    size_bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        """Return the sum."""
        return Amount(
            self.fragments + other.fragments,
            self.rows + other.rows,
            self.size_bytes + other.size_bytes,
        )

    @classmethod
    def of(cls, change: FragmentChange) -> Amount:
        """Return what a fragment that differs has, before and behind the version."""
        rows = sum(max((side.physical_rows or 0) - _deleted(side), 0) for side in change.sides)
        return cls(1, rows, change.size_bytes)


def _deleted(fragment: Any) -> int:
    deleted = fragment.deletion_file
    return 0 if deleted is None else deleted.num_deleted_rows or 0


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """The most that one step of a stream reads; None: no limit.  A step reads one fragment at least, whole."""

    fragments: int | None = None
    rows: int | None = None
    size_bytes: int | None = None

    def allow(self, amount: Amount) -> bool:
        """Tell whether an amount is within the limits."""
        pairs = (
            (amount.fragments, self.fragments),
            (amount.rows, self.rows),
            (amount.size_bytes, self.size_bytes),
        )
        return all(most is None or found <= most for found, most in pairs)


NO_LIMITS: Final = StreamLimits()


@dataclass(frozen=True, slots=True)
class StreamRules:
    """The rules of a stream for versions that delete or update rows.

    ``shows_changes``: it shows them.  ``ignore_deletes``: one that only deletes rows is passed over;
    ``skip_changes``: so is any.  Else such a version is refused.
    """

    shows_changes: bool = False
    ignore_deletes: bool = False
    skip_changes: bool = False


@dataclass(frozen=True, slots=True)
class StreamPart:
    """Fragments of one version that a step reads."""

    change: VersionChange
    fragments: tuple[FragmentChange, ...]


class TableStream:
    """The rows of a table, and what versions change, in the order of commits.

    All is shown with the columns of ``shown``, those of ``snapshot`` or some of them.  The versions that were read last
    are remembered, so a process that goes on with a stream reads each manifest once.
    """

    def __init__(
        self, snapshot: Snapshot, shown: Schema, rules: StreamRules, *, blobs_as_bytes: bool = False
    ) -> None:
        self._snapshot = snapshot
        self._rules = rules
        self._history = History(snapshot, shown, blobs_as_bytes=blobs_as_bytes)
        self._known: OrderedDict[Position, VersionChange] = OrderedDict()

    def newest(self) -> int:
        """Return the newest version of the table, now."""
        return int(latest_version(self._snapshot.store))

    def advance(
        self, start: Position, newest: int, limits: StreamLimits = NO_LIMITS
    ) -> tuple[Position, Amount]:
        """Return how far a step goes from a position, at most to the end of a version, and how much it reads.

        Raises UnsupportedError for a version that the rules refuse, NotFoundError for one that was cleaned up, and if the
        table ends before the position; what lies before such a version is a step of its own.
        """
        if start.version > newest + 1:
            message = (
                f"the stream is at version {start.version}, and {newest} is the newest of {self._snapshot.store.uri!r}: "
                "was the table made anew, or has the query another table's checkpoint?"
            )
            raise NotFoundError(message)
        at, taken = start, Amount()
        last = newest if limits == NO_LIMITS else min(newest, start.version + _MOST_KNOWN - 1)
        self._history.reads_up_to(last)
        while at.version <= last:
            try:
                fragments = self._change(at).fragments
            except LanceError:
                if taken.fragments:
                    return at, taken
                raise
            for number in range(at.fragments, len(fragments)):
                more = taken + Amount.of(fragments[number])
                if taken.fragments and not limits.allow(more):
                    return Position(at.version, number, at.is_snapshot), taken
                taken = more
            at = Position(at.version + 1)
        return at, taken

    def parts(self, start: Position, end: Position) -> Iterator[StreamPart]:
        """Yield the fragments between two positions, version by version; raises as `advance`."""
        at = start
        while (at.version, at.fragments) < (end.version, end.fragments):
            change = self._change(at)
            last = end.fragments if at.version == end.version else len(change.fragments)
            if change.fragments[at.fragments : last]:
                yield StreamPart(change, change.fragments[at.fragments : last])
            at = Position(at.version + 1)

    def _change(self, at: Position) -> VersionChange:
        """Return what is read of a version."""
        key = Position(at.version, 0, at.is_snapshot)
        found = self._known.get(key)
        if found is None:
            found = self._snapshot_of(key) if at.is_snapshot else self._of(key)
            found = self._known[key] = found.travelling()
            if len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        return found

    def _snapshot_of(self, at: Position) -> VersionChange:
        after = self._shown(DatasetVersion(at.version))
        fragments = tuple(FragmentChange(None, each) for each in after.manifest.fragments)
        return VersionChange(None, after, fragments)

    def _of(self, at: Position) -> VersionChange:
        version = DatasetVersion(at.version)
        after = self._history.version(version)
        operation = operation_of(after)
        appended = appended_fragments(after.manifest, operation)
        if appended is not None:  # the version before need not be there
            changes = tuple(FragmentChange(None, each) for each in appended)
            return VersionChange(None, self._shown(version), changes)
        before = None if at.version <= 1 else self._history.version(DatasetVersion(version - 1))
        change = VersionChange.between(before, after, self._history)
        if change.fragments:
            self._check_columns(after)
        if self._rules.shows_changes:
            return change
        if not any(each.before is not None for each in change.fragments):
            return change
        if self._passes_over(change, is_overwrite=isinstance(operation, Overwrite)):
            return VersionChange(None, change.after, ())
        name = "an unknown operation" if operation is None else operation_name(operation)
        raise self._refused(at.version, name, change)

    def _passes_over(self, change: VersionChange, *, is_overwrite: bool) -> bool:
        """Tell whether the rules skip the changes of a version, instead of refusing them."""
        only_deletes = not any(each.after and not each.before for each in change.fragments)
        only_deletes = only_deletes and not any(each.written for each in change.fragments)
        return self._rules.skip_changes or (
            self._rules.ignore_deletes and only_deletes and not is_overwrite
        )

    def _refused(self, version: int, operation: str, change: VersionChange) -> UnsupportedError:
        changed = sum(each.before is not None for each in change.fragments)
        message = (
            f"version {version} ({operation}) deleted or updated rows of {changed} fragments, which a stream may have "
            "given out; skipChangeCommits=true passes over such versions, ignoreDeletes=true over those that only "
            "delete, and readChangeFeed=true shows each change"
        )
        return UnsupportedError(message)

    def _shown(self, version: DatasetVersion) -> VersionRows:
        snapshot = self._history.version(version)
        self._check_columns(snapshot)
        return VersionRows(snapshot, self._history.columns_of(snapshot))

    def _check_columns(self, snapshot: Snapshot) -> None:
        """Raise SchemaMismatchError if a version that is newer than the stream's columns lacks one of them."""
        if snapshot.manifest.version <= self._snapshot.manifest.version:
            return
        ids = {each.id: each for each in snapshot.manifest.schema.fields}
        for field in self._history.shown.fields:
            mine = ids.get(field.id)
            if mine is None or mine.logical_type != field.logical_type:
                message = (
                    f"column {field.name!r} was dropped or got another type by version {snapshot.manifest.version}; start "
                    "the query again from its checkpoint: it shows the columns that the table has then"
                )
                raise SchemaMismatchError(message)
