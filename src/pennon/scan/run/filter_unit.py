"""A filtered scan of one unit; see `pennon.scan.run.filter`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import KIB, FieldId
from pennon.scan.deletion_mask import LiveSlice
from pennon.scan.plan.filter_columns import (
    FieldPlan,
    FragmentFields,
    Growth,
    Late,
    Note,
    WidthGuess,
    stored_bytes,
)
from pennon.scan.plan.pruning import UnitPruner
from pennon.scan.plan.query import BoundQuery
from pennon.scan.predicate import SqlPredicate
from pennon.scan.projection import Projection
from pennon.scan.read.columns import Place, show_columns
from pennon.scan.read.compute import Condition
from pennon.scan.read.execute import Reading
from pennon.scan.read.fragment_reader import Chunks, FragmentReader
from pennon.scan.read.fragment_run import FragmentRun, RunReader
from pennon.scan.read.late_materialization import Choice, read_live, slice_chunks, true_rows
from pennon.scan.read.tasks import ChosenRows, RunTask, Unit
from pennon.scan.snapshot import Key, Same
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field
from pennon.schema.width import has_width, row_bytes
from pennon.table.fragment import Fragment

Columns: TypeAlias = "tuple[int, list[Chunks]]"
"""A number of rows, and the columns of the result for them."""

MASK_BYTES: int = 24
"""What a row leaves behind, about, as a condition is worked out: columns of numbers, masks, places."""
ROUND_BYTES: Final = 512 * KIB
"""A remote store sends so many bytes of a fragment in less time than it takes to answer."""
PREPARED: int = 64
"""Fragments that are kept ready; units come fragment by fragment."""
FEW_TASKS: int = 8
"""Fragments of scans of so few tasks are kept ready for the next scan that needs the same columns ..."""
KEPT_FRAGMENTS: int = 16
"""... so many of them."""
GROWTH: Final[Key[Growth]] = Key("growth")
FILTER_PLAN: Final[Key[FilterPlan]] = Key("filter plan")
WIDTH_SHARE: Final[Key[float]] = Key("share by widths")


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The rows of a unit that passed: where they lie, and the columns that were read for all rows."""

    unit: Unit
    fields: FragmentFields
    physical: Int64Array
    early: list[Chunks]

    def cut(self, rows: int, span: int) -> Iterator[Kept]:
        """Yield the rows in pieces of at most ``rows``, no two of them ``span`` or more apart."""
        start = 0
        while start < len(self.physical):
            end = int(np.searchsorted(self.physical, self.physical[start] + span))
            physical = self.physical[start : min(end, start + rows)]
            early = [slice_chunks(chunks, start, len(physical)) for chunks in self.early]
            yield replace(self, physical=physical, early=early)
            start += len(physical)


def plan_fields(
    query: BoundQuery,
    reading: Reading | None = None,
    *,
    pass_all: bool = False,
    at_once: bool = False,
) -> FieldPlan:
    """Return which fields a query reads before its condition, and which behind it.

    What is small is read all ``at_once``, unless the query says what is to be late.  Nothing is tested of rows
    that ``pass_all``.
    """
    shown = [query.scan.projection] + ([query.computed.inputs] if query.computed else [])
    is_tested = query.condition is not None and not pass_all
    tested = query.condition.inputs.read.fields if query.condition and is_tested else ()
    behind = [field for projection in shown for field in projection.read.fields]
    late = _late(query, reading)
    if at_once and late is None:
        late = False
    return FieldPlan.of(tested, behind, None if pass_all else late)


def _late(query: BoundQuery, reading: Reading | None = None) -> Late:
    if query.late is not None:
        return query.late
    reading = Reading.of(query.scan, share_of(query)) if reading is None else reading
    return False if reading.is_slight else None


def share_of(query: BoundQuery) -> float:
    """Return about how much of the data files a query reads, if all columns were alike."""
    return len(_fields_of(query)) / max(len(query.snapshot.manifest.schema.fields), 1)


def width_share(query: BoundQuery) -> float:
    """Return the same by the widths of the columns, if the values of all that are read have one."""
    fields, snapshot = _fields_of(query), query.snapshot

    def make() -> float:
        read = pa.schema([field_to_arrow(field) for field in fields.values()])
        if not all(map(has_width, read.types)):
            return share_of(query)
        whole = pa.schema([field_to_arrow(field) for field in snapshot.manifest.schema.fields])
        return min(row_bytes(read) / max(row_bytes(whole), 1), 1.0)

    return snapshot.remember(WIDTH_SHARE, make, *sorted(fields))


def _fields_of(query: BoundQuery) -> dict[FieldId, Field]:
    """Return the fields that a query reads, by their ids."""
    shown = [query.scan.projection, *query.inputs]
    return {field.id: field for projection in shown for field in projection.read.fields}


class FilterPlan:
    """The common part of queries that need the same columns, computed once."""

    def __init__(self, query: BoundQuery, reading: Reading) -> None:
        """Plan which fields are read."""
        self.fields = plan_fields(query, reading)
        self.fields_at_once = plan_fields(query, reading, at_once=True)
        self.fields_of_passing = plan_fields(query, reading, pass_all=True)
        all_fields = len(query.snapshot.manifest.schema.fields)
        self.tested = WidthGuess.of(self.fields.early, all_fields)
        self.whole = WidthGuess.of((*self.fields.early, *self.fields.rest), all_fields)
        self.passing = WidthGuess.of(self.fields_of_passing.rest, all_fields)
        self._places: dict[tuple[int, int], list[int]] = {}
        self._fragments: dict[tuple[int | FragmentRun, bool], tuple[Any, dict[str, Any]]] = {}

    @classmethod
    def of(cls, query: BoundQuery, reading: Reading) -> FilterPlan:
        """Return the plan of a query, made now or before: a version remembers the projections of its scans."""
        snapshot = query.snapshot
        if query.computed is not None or not (query.tested is None or query.tested is snapshot):
            return cls(query, reading)
        needed = map(Same, _needed(query))
        make = partial(cls, query, reading)
        return snapshot.remember_plan(FILTER_PLAN, make, *needed, _late(query, reading))

    def places(self, fields: FieldPlan, projection: Projection) -> list[int]:
        """Return the number of each field of a projection of the query among those of one of the plans."""
        key = id(fields), id(projection)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = fields.places(projection)
        return found

    def known_of(self, fragment: Fragment | FragmentRun, *, passes: bool) -> dict[str, Any]:
        """Return what is known of the fields of a fragment, or run, for `FragmentFields` to go on with."""
        key = fragment if isinstance(fragment, FragmentRun) else fragment.id, passes
        of, known = self._fragments.get(key, (None, {}))
        if of is not fragment and of != fragment:
            known = {}
            while len(self._fragments) >= KEPT_FRAGMENTS:
                self._fragments.pop(next(iter(self._fragments)), None)
            self._fragments[key] = fragment, known
        return known


def _bytes_of(columns: Sequence[Chunks]) -> int:
    return sum(chunk.nbytes for chunks in columns for chunk in chunks)


def _needed(query: BoundQuery) -> tuple[Projection | None, ...]:
    """Return the projections of stored columns that a query needs."""
    condition, computed = query.condition, query.computed
    return (
        query.scan.projection,
        None if condition is None else condition.inputs,
        None if computed is None else computed.inputs,
    )


def _pruner_of(query: BoundQuery) -> UnitPruner | None:
    scan, condition = query.scan, query.condition
    if condition is None or scan.with_deleted or not isinstance(condition.predicate, SqlPredicate):
        return None
    return UnitPruner.of(scan.snapshot, scan.tasks, condition.predicate.condition)


class UnitFilter:
    """The prepared filter of fragments; many threads use it on their units."""

    def __init__(self, query: BoundQuery, reading: Reading, note: Note | None) -> None:
        """Prepare a run of the query; ``note`` is told of what is decoded, where memory is let go of meanwhile."""
        self._query = query
        self._note = note
        self._scan = reading
        self._plan = FilterPlan.of(query, reading)
        self._growth = query.scan.snapshot.remember(GROWTH, Growth)
        self._fragments: dict[int, FragmentFields] = {}
        self._pruner = _pruner_of(query)

    # --- how large things are ---------------------------------------------------------------------

    def row_bytes(self, task: int) -> int:
        """Return about how many bytes a row has in all columns that are read, at least 1."""
        read = self._plan.passing if self._passes(task) else self._plan.whole
        return max(read.of_fragment(self._scan.tasks[task].fragment), 1)

    def tested_bytes(self, task: int) -> int:
        """Return about how many bytes of these are read before the condition.

        The file is asked, where that costs no request.
        """
        if self._passes(task):
            return 0
        if self._scan.is_remote:
            return self._plan.tested.of_fragment(self._scan.tasks[task].fragment)
        return self._of(task).early_width

    # --- units ------------------------------------------------------------------------------------

    def count(self, unit: Unit) -> int:
        """Return how many rows of a unit pass."""
        if self._query.condition is None:
            return unit.rows
        if self._passes(unit.task):
            return self._counted(unit, unit.rows)
        given = self._scan.tasks[unit.task].chosen
        if given is not None:
            return self._counted(unit, len(self._test_chosen(unit, given).physical))
        unit = self._narrowed(unit)
        if not unit.rows:
            return 0
        fields, wanted = self._find(unit)
        early = read_live(fields.early, wanted)
        condition, columns = self._inputs(unit, fields.plan, wanted.physical, early)
        return self._counted(unit, condition.mask(columns, unit.rows).true_count)

    def test(self, unit: Unit) -> Kept | None:
        """Return the rows of a unit that pass, no more than are enough; None: bounds leave no row."""
        given = self._scan.tasks[unit.task].chosen
        if given is not None:
            kept = self._test_chosen(unit, given)
            self._counted(unit, len(kept.physical))
            return kept
        unit = self._narrowed(unit)
        if not unit.rows:
            return None
        fields, wanted = self._find(unit)
        early = read_live(fields.early, wanted) if fields.plan.early else []
        if self._query.condition is None:
            return Kept(unit, fields, wanted.physical(), early)
        chosen = self._passing(unit, fields.plan, wanted.physical, early)
        if self._note is not None:
            self._note(_bytes_of(early) + unit.rows * MASK_BYTES)
        if self._query.most is not None and len(chosen.numbers) > self._query.most:
            chosen = Choice(chosen.numbers[: self._query.most], unit.rows)
        early = [
            chosen.pick(chunks) if n in fields.plan.kept else [] for n, chunks in enumerate(early)
        ]
        self._counted(unit, len(chosen.numbers))
        return Kept(unit, fields, wanted.chosen(chosen.numbers), early)

    def _test_chosen(self, unit: Unit, chosen: ChosenRows) -> Kept:
        """Return those of the rows that indices leave of a unit that pass."""
        fields = self._of(unit.task)
        physical = fields.live.to_physical(chosen.offsets[unit.start : unit.end])
        if chosen.pass_all:
            return Kept(unit, fields, physical, [])
        early = fields.read_early(physical)
        passing = self._passing(unit, fields.plan, lambda: physical, early)
        early = [passing.pick(chunks) for chunks in early]
        return Kept(unit, fields, physical[passing.numbers], early)

    def _counted(self, unit: Unit, kept: int) -> int:
        tested = self._query.tested
        if tested is not None and tested.meter is not None:
            tested.meter.test(unit.rows, kept)
        return kept

    def read(self, kept: Kept) -> Columns:
        """Return the columns of the result for the rows that are kept."""
        read = [*kept.early, *kept.fields.read_rest(kept.physical, self._note)]
        if self._note is not None:
            self._note(_bytes_of(read))
        place = self._place(kept.unit, kept.physical)
        rows = len(kept.physical)
        plan = kept.fields.plan
        shown = self._show(plan, self._scan.projection, read, place)
        computed = self._query.computed
        if computed is None:
            return rows, shown
        columns = dict(zip(self._scan.projection.names, shown, strict=True))
        columns |= computed.run(self._show(plan, computed.inputs, read, place), rows)
        return rows, [columns[name] for name in self._query.schema.names]

    def _narrowed(self, unit: Unit) -> Unit:
        """Return what is left of a unit by bounds that are known only now."""
        if self._pruner is None:
            return unit
        task = self._scan.tasks[unit.task]
        if isinstance(task, RunTask):
            return unit
        return Unit(unit.task, *self._pruner.narrowed(unit.task, task, unit.start, unit.end))

    def _find(self, unit: Unit) -> tuple[FragmentFields, LiveSlice]:
        fields = self._of(unit.task)
        return fields, fields.live.between(unit.start, unit.end)

    def _passing(
        self, unit: Unit, plan: FieldPlan, physical: Callable[[], Int64Array], early: list[Chunks]
    ) -> Choice:
        """Return which rows of a unit pass."""
        condition, columns = self._inputs(unit, plan, physical, early)
        numbers = condition.passing(columns, unit.rows)
        if numbers is not None:
            return Choice(numbers, unit.rows)
        mask = condition.mask(columns, unit.rows)
        return Choice(true_rows(mask), unit.rows, mask)

    def _inputs(
        self, unit: Unit, plan: FieldPlan, physical: Callable[[], Int64Array], early: list[Chunks]
    ) -> tuple[Condition, list[Chunks]]:
        """Return the condition, and the columns that it needs of the rows of a unit."""
        condition = self._query.condition
        if condition is None:
            raise ValueError
        inputs = condition.inputs
        place = self._place(unit, physical()) if inputs.metas else None
        return condition, self._show(plan, inputs, early, place)

    def _show(
        self, plan: FieldPlan, projection: Projection, read: Sequence[Chunks], place: Place | None
    ) -> list[Chunks]:
        chosen = [read[number] for number in self._plan.places(plan, projection)]
        return show_columns(projection, chosen, place)

    def _place(self, unit: Unit, physical: Int64Array) -> Place:
        return self._scan.place(unit.task, self._of(unit.task).live, physical)

    def _passes(self, task: int) -> bool:
        """Return whether indices say that all rows of a task pass."""
        chosen = self._scan.tasks[task].chosen
        return chosen is not None and chosen.pass_all

    def _fields_of(self, reader: FragmentReader | RunReader) -> FieldPlan:
        """Return which fields are read before the condition: all, where one more round costs more than their bytes."""
        plan = self._plan.fields
        if not (self._scan.is_remote and plan.rest) or isinstance(reader, RunReader):
            return plan
        size_bytes = 0
        for field in plan.rest:
            stored = stored_bytes(reader, field)
            size_bytes += ROUND_BYTES + 1 if stored is None else stored
            if size_bytes > ROUND_BYTES:
                return plan
        return self._plan.fields_at_once

    def _of(self, task: int) -> FragmentFields:
        found = self._fragments.get(task)
        if found is None:
            reader, passes = self._scan.reader_of(task), self._passes(task)
            seen = self._query.tested
            tested = (
                reader
                if seen is None or seen is reader.snapshot
                else replace(reader, snapshot=seen)
            )
            fields = self._plan.fields_of_passing if passes else self._fields_of(reader)
            is_kept = len(self._scan.tasks) <= FEW_TASKS and not self._query.scan.with_deleted
            known = self._plan.known_of(reader.fragment, passes=passes) if is_kept else {}
            found = FragmentFields(fields, self._growth, tested, reader, known)
            while len(self._fragments) >= PREPARED:
                self._fragments.pop(next(iter(self._fragments)), None)
            self._fragments[task] = found
        return found
