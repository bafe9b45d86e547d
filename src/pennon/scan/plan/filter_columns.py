"""The columns that a filtered scan reads before its condition, and those that it reads after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import KIB, FieldId
from pennon.encoding.read_protocol import run
from pennon.file.container.file import DataFile
from pennon.scan.deletion_mask import LiveRows
from pennon.scan.projection import Projection
from pennon.scan.read.batch_sizing import FIRST_GROWTH
from pennon.scan.read.fragment_reader import Chunks, FragmentReader, PreparedRead
from pennon.scan.read.fragment_run import FragmentRun, PreparedRun, RunReader
from pennon.scan.read.late_materialization import Cover
from pennon.scan.read.tasks import bytes_per_row
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field
from pennon.schema.width import has_width, row_bytes
from pennon.table.fragment import Fragment

T = TypeVar("T")

ROW_COST_BYTES: Final = 400
"""To read a row by itself costs as much as to read so many bytes in sequence.

Measured on columns of all types, in files that are mapped.
"""
REMOTE_ROW_COST_BYTES: Final = 64 * KIB
"""The same where a request is a round trip."""
LEAST_WIDTH: Final = 8
"""Bytes that a value costs, however few it takes in the file: bits and numbers have to be unpacked."""

Note: TypeAlias = Callable[[int], None]
"""What is told how many bytes were decoded, after each piece."""
Late: TypeAlias = "bool | frozenset[str] | None"
"""Which columns are read after the condition, just for the rows that it kept.

None: all, and rows in between where it costs less.  True: all.  False: none.  Or these.
"""


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """Fields to read for all rows (``early``) and for the rows that are kept (``rest``).

    ``exact`` tells of each field of ``rest`` that nothing in between is to be read.
    """

    early: tuple[Field, ...]
    rest: tuple[Field, ...]
    exact: tuple[bool, ...]
    kept: frozenset[int]
    """Numbers of early fields that are needed for the rows that are kept, too."""

    @classmethod
    def of(cls, tested: Sequence[Field], behind: Sequence[Field], late: Late) -> FieldPlan:
        """Plan to read fields that a condition tests, and those that are needed behind it."""
        first = _Numbered(tested)
        later = _Numbered(behind)
        rest = [field for field in later.fields if first.number(field) is None]
        if isinstance(late, frozenset):
            first.add(field for field in rest if field.name not in late)
        elif late is False:
            first.add(rest)
        rest = [field for field in rest if first.number(field) is None]
        early = enumerate(first.fields)
        kept = frozenset(number for number, field in early if later.number(field) is not None)
        return cls(tuple(first.fields), tuple(rest), tuple(late is not None for _ in rest), kept)

    def places(self, projection: Projection) -> list[int]:
        """Return the number of each field of a projection among those read: early ones, then rest."""
        fields = _Numbered((*self.early, *self.rest))
        return [fields.known(field) for field in projection.read.fields]


class _Numbered:
    """Distinct fields, in the order in which they came; there may be very many."""

    def __init__(self, fields: Iterable[Field]) -> None:
        self.fields: list[Field] = []
        self._by_id: dict[FieldId, list[int]] = {}
        self.add(fields)

    def add(self, fields: Iterable[Field]) -> None:
        """Take in fields, but for those that are there."""
        for field in fields:
            if self.number(field) is None:
                self._by_id.setdefault(field.id, []).append(len(self.fields))
                self.fields.append(field)

    def number(self, field: Field) -> int | None:
        """Return the number of a field; parts of one struct have one id, and are several."""
        same = self._by_id.get(field.id, ())
        return next((number for number in same if self.fields[number] == field), None)

    def known(self, field: Field) -> int:
        """Return the number of a field that is there."""
        found = self.number(field)
        if found is None:
            raise ValueError(field)
        return found


@dataclass(frozen=True, slots=True)
class _Group:
    """Fields of the rest that are read together; with ``cost_bytes`` see `Cover.of`."""

    numbers: tuple[int, ...]
    columns: PreparedRead | PreparedRun
    cost_bytes: int


class Growth:
    """The ratio of memory bytes to file bytes of a table's fields; learned by reading them.

    What is to be decoded decides what a row costs, and the files do not tell it.
    """

    def __init__(self) -> None:
        self._learned: dict[FieldId, float] = {}

    def of(self, field: Field, guess: float) -> float:
        """Return what is known of a field; ``guess`` before anything was read."""
        return self._learned.get(field.id, guess)

    def learn(self, field: Field, stored_width: int, size_bytes: int, rows: int) -> None:
        """Take note of what rows of a field became; threads may do so at once."""
        self._learned[field.id] = max(size_bytes / max(rows * stored_width, 1), 1.0)


class FragmentFields:
    """The fields of a plan in one fragment, ready to be read.

    ``known`` is what was found out of them before, by other runs, and what this one finds out: it holds files that
    are open, and no version of the table.
    """

    def __init__(
        self,
        plan: FieldPlan,
        growth: Growth,
        tested: FragmentReader | RunReader,
        behind: FragmentReader | RunReader,
        known: dict[str, Any],
    ) -> None:
        """Open what the condition needs.  Both readers are of one fragment."""
        self.plan = plan
        self._growth = growth
        self._tested = tested
        self._behind = behind
        self._known = known
        self.fragment = tested.fragment
        self.live: LiveRows
        self.early: PreparedRead | PreparedRun
        self.live, self.early = self._once("early", lambda: tested.find(plan.early))

    def _once(self, name: str, make: Callable[[], T]) -> T:
        found: T | None = self._known.get(name)
        if found is None:
            found = self._known[name] = make()
        return found

    @property
    def early_width(self) -> int:
        """Return about how many bytes a row of the early fields takes."""
        return self._once(
            "early width", lambda: sum(width_of(self._tested, field) for field in self.plan.early)
        )

    def read_early(self, physical: Int64Array) -> list[Chunks]:
        """Return the values of each early field at sorted, distinct physical offsets."""
        cost = REMOTE_ROW_COST_BYTES if self._tested.snapshot.is_remote else ROW_COST_BYTES
        cover = Cover.of(physical, max(self.early_width, LEAST_WIDTH), cost)
        return [cover.wanted.pick(chunks) for chunks in self.early.read(cover.rows)]

    @property
    def rest_width(self) -> int:
        """Return about how many bytes a row of the rest takes."""
        return sum(map(self._width, range(len(self._stored))))

    @property
    def _stored(self) -> list[int]:
        """Return the width of each field of the rest in the file, or in memory if that is known."""
        return self._once(
            "stored", lambda: [width_of(self._behind, field) for field in self.plan.rest]
        )

    def _width(self, number: int) -> int:
        growth = self._growth.of(self.plan.rest[number], self._guesses[number])
        return int(self._stored[number] * growth)

    @property
    def _guesses(self) -> list[int]:
        """Return how many times as large each field of the rest may become, before it is known.

        Many units of a remote store are read before the first one tells.
        """
        is_near = not self._behind.snapshot.is_remote
        return self._once(
            "guesses",
            lambda: [1 if is_near or each else FIRST_GROWTH for each in self._have_width],
        )

    @property
    def _have_width(self) -> list[bool]:
        """Return of each field of the rest whether all values have the same width: then nothing is to be learned."""
        return self._once(
            "have width",
            lambda: [has_width(field_to_arrow(field).type) for field in self.plan.rest],
        )

    def _group(self) -> list[_Group]:
        """Return how the rest is read: each field by itself, or all in lockstep."""
        fields = self.plan.rest
        together = self._behind.prepare(fields)
        if not together.is_mapped:
            cost = 0 if any(self.plan.exact) else REMOTE_ROW_COST_BYTES
            return [_Group(tuple(range(len(fields))), together, cost)]
        return [
            _Group((number,), self._behind.prepare([field]), 0 if exact else ROW_COST_BYTES)
            for number, (field, exact) in enumerate(zip(fields, self.plan.exact, strict=True))
        ]

    def read_rest(self, physical: Int64Array, note: Note | None) -> list[Chunks]:
        """Return the values of each field of the rest at sorted, distinct physical offsets."""
        covers: dict[tuple[int, int], Cover] = {}
        found: dict[int, Chunks] = {}
        for group in self._once("groups", self._group) if self.plan.rest else ():
            width = sum(map(self._width, group.numbers))
            costs = _round_up(max(width, LEAST_WIDTH)), group.cost_bytes
            cover = covers.get(costs) or Cover.of(physical, *costs)
            covers[costs] = cover
            read = group.columns.read(cover.rows)
            for number, chunks in zip(group.numbers, read, strict=True):
                if note is not None or not self._have_width[number]:
                    size_bytes = sum(chunk.nbytes for chunk in chunks)
                    field, width = self.plan.rest[number], self._stored[number]
                    self._growth.learn(field, width, size_bytes, cover.rows.count)
                    if note is not None:
                        note(size_bytes)
                found[number] = cover.wanted.pick(chunks)
        return [found[number] for number in range(len(self.plan.rest))]


def _round_up(width: int) -> int:
    """Return a width of two bits and zeros; columns of about one width share what is found for it."""
    step = 1 << max(width.bit_length() - 2, 0)
    return -(-width // step) * step


def width_of(reader: FragmentReader | RunReader, field: Field) -> int:
    """Return about how many bytes a value of a field takes: in the file, or in memory if that is more."""
    if isinstance(reader, RunReader):
        return max(width_of(each, field) for each in reader.samples())
    least = row_bytes(pa.schema([field_to_arrow(field)]))
    rows = max(reader.physical_rows(), 1)
    stored = stored_bytes(reader, field)
    if stored is None:
        stored = bytes_per_row(reader.fragment) * rows
    return max(least, stored // rows)


@dataclass(frozen=True, slots=True)
class WidthGuess:
    """A guess of the bytes of a row of some fields, made without reading a file.

    ``fixed``: that many, if all values have the same width; else they have a ``share`` of the file.
    """

    fixed: int | None
    share: float

    @classmethod
    def of(cls, fields: Sequence[Field], all_fields: int) -> WidthGuess:
        """Prepare the guess for fields of a table that has so many."""
        types = [field_to_arrow(field) for field in fields]
        is_fixed = all(has_width(each.type) for each in types)
        fixed = row_bytes(pa.schema(types)) if is_fixed else None
        return cls(fixed, len(fields) / max(all_fields, 1))

    def of_fragment(self, fragment: Fragment | FragmentRun) -> int:
        """Return the bytes of a row of a fragment, or a run."""
        whole = bytes_per_row(fragment)
        return math.ceil(whole * self.share) if self.fixed is None else min(self.fixed, whole)


def stored_bytes(reader: FragmentReader, field: Field) -> int | None:
    """Return the bytes of all pages of a field; None if the files do not tell."""
    size_bytes = 0
    for held in reader.files:
        indices = [held.column_of[f.id] for f in field.walk() if f.id in held.column_of]
        if not indices:
            continue
        data = reader.snapshot.open_file(held.ref).data
        if not isinstance(data, DataFile):
            return None
        columns = run(data.read_columns(indices), data.source.read)
        size_bytes += sum(column.size_bytes for column in columns)
    return size_bytes
