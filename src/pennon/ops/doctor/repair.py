"""Repair: one new version without what is broken, which says beforehand what is lost.

==========================================  ====================================================================
broken                                      the new version
==========================================  ====================================================================
a data file, or a column in one             the column is NULL in the fragment; the fragment goes if the column must
                                            not be NULL, or nothing is left of it
a deletion file                             the fragment goes: nobody knows which of its rows are deleted, and deleted rows
                                            must not return unseen; ``restore_deleted`` keeps it, with all its rows
a count or a size in the manifest           says what the files say
stable row ids, versions of rows            the fragment's rows get fresh ones
a segment of an index                       goes; changed fragments are no longer covered, and are scanned
the newest manifests                        the newest version that can be read follows behind them
==========================================  ====================================================================

No file is deleted or changed: older versions stay what they are, and a fragment that went can be fetched from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from pennon.core.units import FieldId, FragmentId
from pennon.errors import ArgumentError, LanceError, UnsupportedError
from pennon.ops.commit import commit_behind, commit_repaired
from pennon.ops.doctor.examine import Examination
from pennon.ops.doctor.findings import Severity
from pennon.ops.doctor.fragment_state import FragmentState
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Schema
from pennon.table.apply.checks import missing_field
from pennon.table.apply.index_rules import prune_fields, relevant_indices
from pennon.table.blob_table import check_no_blob_table
from pennon.table.flags import check_writable
from pennon.table.fragment import TOMBSTONE, DataFileRef, Fragment
from pennon.table.indices import FRAGMENT_REUSE, SYSTEM, Index
from pennon.table.indices_wire import covering, parse_indices, serialize_indices
from pennon.table.manifest import Manifest
from pennon.table.row_ids.encode_wire import encode_one_version, encode_row_id_range

_SPARE_FRAGMENTS: Final = 1 << 10
_SPARE_ROWS: Final = 1 << 32
"""Behind manifests that cannot be read, so many ids are left out: they may have given these out."""
_BLIND: Final = frozenset({"store-failed", "failed-check"})
"""Findings that leave open what is broken."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The choices of a repair where something is lost either way.

    ``restore_deleted``: fragments whose deletion file is lost stay, and their deleted rows come back.
    ``lost_columns``: a column whose values are lost becomes NULL in the fragment (``null``), or the fragment's rows go
    (``drop``).
    """

    restore_deleted: bool = False
    lost_columns: Literal["null", "drop"] = "null"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a repair does, and what is lost by it.

    >>> from pennon import doctor
    >>> step = doctor.Step("drop-fragment", "fragment 3 goes", fragment=3, rows_lost=10)
    >>> str(step)
    'fragment 3 goes: 10 rows lost'
    """

    action: str
    what: str
    file: str | None = None
    fragment: int | None = None
    column: str | None = None
    index: str | None = None
    rows_lost: int = 0
    values_lost: int = 0
    rows_restored: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the step as values of JSON.

        >>> from pennon import doctor
        >>> doctor.Step("drop-index", "the segment goes", index="i").to_dict()["rows_lost"]
        0
        """
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        """Return the step as one line."""
        lost = []
        if self.rows_lost:
            lost.append(f"{self.rows_lost:,} rows lost")
        if self.values_lost:
            lost.append(f"{self.values_lost:,} values lost")
        if self.rows_restored:
            lost.append(f"{self.rows_restored:,} deleted rows come back")
        return f"{self.what}: {', '.join(lost)}" if lost else self.what


@dataclass(frozen=True, slots=True)
class Repair:
    """The plan of a repair: what it does, and what is lost by it; `apply` makes the new version.

    ``why_not``: why nothing can be done, None if something can.

    >>> from pennon import doctor
    >>> _ = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> plan = doctor.repair(uri)
    >>> plan.steps, plan.rows_lost, plan.values_lost, plan.rows_restored
    ((), 0, 0, 0)
    """

    steps: tuple[Step, ...]
    why_not: str | None = None
    _snapshot: Snapshot | None = field(default=None, repr=False)
    _manifest: Manifest | None = field(default=None, repr=False)
    _behind: int | None = field(default=None, repr=False)

    @property
    def rows_lost(self) -> int:
        """Return how many rows the new version does not have."""
        return sum(each.rows_lost for each in self.steps)

    @property
    def values_lost(self) -> int:
        """Return how many values are NULL in the new version that were not."""
        return sum(each.values_lost for each in self.steps)

    @property
    def rows_restored(self) -> int:
        """Return how many deleted rows come back."""
        return sum(each.rows_restored for each in self.steps)

    @property
    def summary(self) -> str:
        """Return one line about the whole repair."""
        if self.why_not is not None:
            return f"cannot be repaired here: {self.why_not}"
        if not self.steps:
            return "nothing to repair"
        return (
            f"{len(self.steps):,} steps: {self.rows_lost:,} rows and {self.values_lost:,} values lost, "
            f"{self.rows_restored:,} deleted rows restored"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as values of JSON."""
        return {
            "steps": [each.to_dict() for each in self.steps],
            "rows_lost": self.rows_lost,
            "values_lost": self.values_lost,
            "rows_restored": self.rows_restored,
            "why_not": self.why_not,
        }

    def apply(self) -> int:
        """Make the new version, and return its number.

        Raises ArgumentError if there is nothing to do or nothing can be done, RetryableConflict if another writer
        has committed since the examination.
        """
        if self.why_not is not None or self._manifest is None or self._snapshot is None:
            raise ArgumentError(self.summary)
        properties = {"pennon.repair": self.summary[:500]}
        if self._behind is not None:
            made = commit_behind(self._snapshot, self._manifest, self._behind, properties)
        else:
            made = commit_repaired(self._snapshot, self._manifest, properties)
        return made.version


def plan_repair(exam: Examination, choice: Choice | None = None) -> Repair:
    """Return what a repair of what was found would do; nothing is written.

    A repair of columns and pages needs a deep examination.
    """
    if exam.snapshot is None or exam.location is None:
        why = next((each.what for each in exam.findings if each.code != "damaged-version"), "")
        return Repair((), f"no manifest of the table can be read ({why}); restore one from a copy")
    blind = next((each for each in exam.findings if each.code in _BLIND), None)
    if blind is not None:
        return Repair((), f"what is broken is not known: {blind.what}")
    snapshot = exam.snapshot
    try:
        check_writable(snapshot.manifest)
        check_no_blob_table(snapshot.manifest)
    except UnsupportedError as error:
        return Repair((), error.message)
    repeated = [each for each in exam.findings if each.code == "repeated-fragment-id"]
    if repeated:
        why = "two fragments have one id; `pennon convert TABLE --to VERSION` writes all rows anew"
        return Repair((), why)
    plan = _Plan(exam, snapshot.manifest, choice or Choice())
    manifest = plan.repaired()
    behind = exam.newest.version if exam.newest.version > exam.location.version else None
    if behind is not None:
        count = behind - exam.location.version
        what = (
            f"version {exam.location.version} follows as version {behind + 1}: what {count} newer versions changed is "
            "lost, and rows that they deleted come back, as their manifests cannot be read"
        )
        plan.steps.insert(0, Step("skip-manifests", what, exam.newest.path))
        manifest = replace(
            manifest,
            max_fragment_id=manifest.last_fragment_id + _SPARE_FRAGMENTS,
            next_row_id=manifest.next_row_id + (_SPARE_ROWS if manifest.has_stable_row_ids else 0),
        )
    if not plan.steps:
        return Repair((), _why_nothing(exam))
    return Repair(tuple(plan.steps), None, snapshot, manifest, behind)


def _why_nothing(exam: Examination) -> str | None:
    """Return why there is nothing to do though there are errors; None if there are none."""
    left = next((each for each in exam.findings if each.severity is Severity.ERROR), None)
    if left is None:
        return None
    return f"{left.what} [{left.where}]; {left.advice}"


@dataclass(slots=True)
class _Plan:
    exam: Examination
    head: Manifest
    choice: Choice
    steps: list[Step] = field(default_factory=list)
    next_row_id: int = 0
    uncovered: set[FragmentId] = field(default_factory=set)
    """Fragments whose rows, or their ids, are others now: no index covers them."""
    nulled: dict[FragmentId, set[FieldId]] = field(default_factory=dict)

    def repaired(self) -> Manifest:
        """Return the version without what is broken."""
        self.next_row_id = self._known_next_row_id()
        kept: list[Fragment] = []
        for number, state in enumerate(self.exam.fragments):
            fragment = self.head.fragments[number]
            if state.is_damaged or number in self.exam.repeated_ids:
                found = self._fragment(fragment, state, number in self.exam.repeated_ids)
                kept += [] if found is None else [found]
            else:
                kept.append(fragment)
        indices = self._indices(kept)
        return replace(
            self.head,
            fragments=tuple(kept),
            next_row_id=self.next_row_id,
            max_fragment_id=self.head.last_fragment_id if self.head.last_fragment_id >= 0 else None,
            indices=serialize_indices(indices) if indices else b"",
        )

    def _known_next_row_id(self) -> int:
        last = max((each.ids[1] for each in self.exam.fragments if each.ids), default=-1)
        if self.head.has_stable_row_ids and last >= self.head.next_row_id:
            what = f"the next row gets the id {last + 1}, not {self.head.next_row_id}"
            self.steps.append(Step("next-row-id", what))
        return max(self.head.next_row_id, last + 1) if self.head.has_stable_row_ids else 0

    # --- fragments --------------------------------------------------------------------------------

    def _fragment(
        self, fragment: Fragment, state: FragmentState, has_repeated_ids: bool
    ) -> Fragment | None:
        """Return a fragment without what is broken; None if it goes."""
        files, lost = _kept_files(fragment, state)
        left = replace(fragment, files=files)
        mine = {number for number in lost if self._is_shown(number)}
        why = self._why_it_goes(left, mine, state)
        if why is not None:
            self._drop(fragment, state, why)
            return None
        live = _live_rows(fragment, state)
        for top in self.head.schema.fields:
            gone = mine.intersection(each.id for each in top.walk())
            if gone:
                what = f"column {top.name!r} of fragment {fragment.id} becomes NULL"
                self._step("null-column", what, state, values_lost=live, column=top.name)
        if mine:
            self.nulled[fragment.id] = mine
        if state.sizes:
            for path, size_bytes in state.sizes.items():
                what = f"the manifest says {size_bytes} bytes of {path}"
                self._step("correct-size", what, state, file=path)
        if state.rows is not None:
            what = f"the manifest says {state.rows} rows of fragment {fragment.id}, not {fragment.physical_rows}"
            self._step("correct-rows", what, state)
            left = replace(left, physical_rows=state.rows)
            self.uncovered.add(fragment.id)
        left = self._with_deletions(left, state)
        if state.row_ids_lost or has_repeated_ids:
            left = self._with_fresh_ids(left, state)
        elif state.row_versions_lost:
            what = (
                f"the rows of fragment {fragment.id} count as created and updated by this version"
            )
            self._step("fresh-row-versions", what, state)
            left = self._with_versions(left)
        return left

    def _is_shown(self, number: FieldId) -> bool:
        return any(each.id == number for each in self.head.schema.walk())

    def _why_it_goes(self, left: Fragment, lost: set[FieldId], state: FragmentState) -> str | None:
        deletion = left.deletion_file
        if state.deletions == -1 and not self.choice.restore_deleted and deletion is not None:
            path = deletion.store_path(left.id)
            return f"{path} is lost, so nobody knows which of its rows are deleted"
        if not lost:
            return None
        names = [f.name for f in self.head.schema.fields if lost & {each.id for each in f.walk()}]
        if not _holds_any(left, self.head.schema):
            return "no column of it is left"
        if self.choice.lost_columns == "drop":
            return f"the values of columns {names} are lost"
        missing = missing_field(self.head.schema, [left])
        if missing is not None:
            return f"the values of column {missing.name!r} are lost, which must not be NULL"
        return None

    def _with_deletions(self, left: Fragment, state: FragmentState) -> Fragment:
        deletion = left.deletion_file
        if deletion is None or state.deletions is None:
            return left
        if state.deletions >= 0:
            what = f"the manifest says {state.deletions} deleted rows of fragment {left.id}"
            self._step("correct-deletions", what, state)
            return replace(left, deletion_file=replace(deletion, num_deleted_rows=state.deletions))
        count = deletion.num_deleted_rows or 0
        what = f"fragment {left.id} stays without its deletion file"
        self._step("restore-deleted", what, state, rows_restored=count)
        self.uncovered.add(left.id)
        return replace(left, deletion_file=None)

    def _with_fresh_ids(self, left: Fragment, state: FragmentState) -> Fragment:
        rows = left.physical_rows or 0
        what = f"the rows of fragment {left.id} get fresh ids, from {self.next_row_id} on"
        self._step("fresh-row-ids", what, state)
        first, self.next_row_id = self.next_row_id, self.next_row_id + rows
        self.uncovered.add(left.id)
        return self._with_versions(replace(left, row_ids=encode_row_id_range(first, rows)))

    def _with_versions(self, left: Fragment) -> Fragment:
        """Return a fragment whose rows the new version created and updated."""
        rows = left.physical_rows or 0
        versions = encode_one_version(self.head.version + 1, rows) if rows else None
        return replace(left, created_at_versions=versions, last_updated_at_versions=versions)

    def _drop(self, fragment: Fragment, state: FragmentState, why: str) -> None:
        what = f"fragment {fragment.id} goes: {why}"
        self._step("drop-fragment", what, state, rows_lost=_live_rows(fragment, state))

    def _step(self, action: str, what: str, state: FragmentState, **more: Any) -> None:
        files = state.lost_files or list(state.lost_fields)
        file = more.pop("file", files[0] if files else None)
        self.steps.append(Step(action, what, file, state.id, **more))

    # --- indices ----------------------------------------------------------------------------------

    def _indices(self, kept: Sequence[Fragment]) -> tuple[Index, ...]:
        try:
            indices: Iterable[Index] = parse_indices(self.head.indices)
        except LanceError:
            self.steps.append(Step("drop-indices", "all indices go: their list cannot be read"))
            return ()
        broken = {each.uuid for each in self.exam.segments if each.is_broken}
        alive = frozenset(each.id for each in kept)
        if any(each.name == FRAGMENT_REUSE and each.uuid in broken for each in indices):
            for each in indices:  # nobody can tell any more where the rows of these are
                if each.name not in SYSTEM and not (each.fragment_ids or frozenset()) <= alive:
                    broken.add(each.uuid)
        for each in indices:
            if each.uuid in broken:
                what = f"a segment of the index {each.name!r} goes: create the index again"
                self.steps.append(Step("drop-index", what, each.folder, index=each.name))
        found = tuple(each for each in indices if each.uuid not in broken)
        for fragment_id, fields in self.nulled.items():
            found = prune_fields(found, _others(found, {fragment_id}), fields, self.head.schema)
        if self.uncovered:
            found = tuple(
                each
                if each.fragment_ids is None or each.name in SYSTEM
                else covering(each, each.fragment_ids - self.uncovered)
                for each in found
            )
        return found if alive == self._before else relevant_indices(found, self.head.schema, kept)

    @property
    def _before(self) -> frozenset[FragmentId]:
        return frozenset(each.id for each in self.head.fragments)


def _others(indices: Iterable[Index], changed: set[FragmentId]) -> frozenset[FragmentId]:
    """Return the fragments that indices cover, without those that changed."""
    covered = (each.fragment_ids or frozenset[FragmentId]() for each in indices)
    return frozenset[FragmentId]().union(*covered) - changed


def _kept_files(
    fragment: Fragment, state: FragmentState
) -> tuple[tuple[DataFileRef, ...], set[FieldId]]:
    """Return the data files that can be used, and the fields that are lost with the others."""
    kept, lost = [], set[FieldId]()
    for ref in fragment.files:
        if ref.store_path in state.lost_files:
            lost.update(each for each in ref.field_ids if each >= 0)
            continue
        gone = {FieldId(each) for each in state.lost_fields.get(ref.store_path, ())}
        gone &= set(ref.field_ids)
        lost |= gone
        left = ref.without(gone) if gone else ref
        if ref.store_path in state.sizes:
            left = replace(left, size_bytes=state.sizes[ref.store_path])
        if not gone or any(each != TOMBSTONE for each in left.field_ids):
            kept.append(left)
    return tuple(kept), lost


def _holds_any(fragment: Fragment, schema: Schema) -> bool:
    """Return whether a data file holds a field of the schema."""
    known = {each.id for each in schema.walk()}
    return any(not known.isdisjoint(ref.field_ids) for ref in fragment.files)


def _live_rows(fragment: Fragment, state: FragmentState) -> int:
    """Return how many rows of a fragment are alive, as far as anybody can tell."""
    if state.live is not None:
        return state.live
    return fragment.num_rows or fragment.physical_rows or 0
