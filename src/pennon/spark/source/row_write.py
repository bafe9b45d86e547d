"""The write of one Spark task, which makes data files of the rows of a partition, and the one commit of all tasks.

Executors import this and little more: a worker is started anew again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import AlreadyCommittedError, AlreadyExistsError, ArgumentError
from pennon.file.container.input_check import InputCheck
from pennon.ops.task_wire import parse_numbered_fragments, serialize_numbered_fragments
from pennon.ops.write import (
    WriteMode,
    WritePlan,
    WriteTask,
    commit_write,
    plan_write,
    write_fragments,
)
from pennon.schema.arrow import schema_to_arrow
from pennon.spark.arrow_convert import convert_batch
from pennon.table.commit.options import CommitPolicy
from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import parse_fragments, serialize_fragments
from pennon.table.manifest import Manifest
from pennon.table.transaction import AppVersion
from pennon.table.versions import latest_version

if TYPE_CHECKING:
    from pennon.scan.predicate import Predicate
    from pennon.spark.source.evolution import Evolution, RunColumns

_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A write of Spark: what tasks do, and what its commit will be; it pickles.

    ``evolution`` is what makes the table's schema grow along with an append.  ``stable_row_ids`` counts for
    a new table.  ``app``: the application whose batch this is, which is committed once.
    """

    write: WritePlan
    evolution: Evolution | None = None
    stable_row_ids: bool = False
    app: AppVersion | None = None

    @property
    def base(self) -> Manifest | None:
        """Return the version that was planned on, None if there was no table."""
        return self.write.base

    @property
    def properties(self) -> dict[str, str]:
        """Return what the transaction says of the application."""
        return {} if self.app is None else self.app.properties()

    @property
    def known_version(self) -> int | None:
        """Return the version that was planned on if the application has committed this batch, or a later one."""
        base = self.base
        is_known = self.app is not None and base is not None and self.app.is_in(base.config)
        return int(base.version) if base is not None and is_known else None

    def travelling(self) -> TablePlan:
        """Return the plan without the fragments and indices of its version, which may be many.

        That is what tasks need, and the commit of new rows.
        """
        base = self.base
        if base is None or self.evolution is not None:
            return self
        bare = replace(base, fragments=(), indices=b"")
        return replace(self, write=replace(self.write, base=bare))

    def once(self, commit: Callable[[], int]) -> int:
        """Return the version that ``commit`` makes; the newest one if the application has committed the batch before."""
        if self.app is None:
            return commit()
        try:
            return commit()
        except AlreadyCommittedError:
            return int(latest_version(self.write.task.store))


@dataclass(frozen=True, slots=True)
class TableWrite:
    """The part of a write that travels to the executors."""

    to_bytes = staticmethod(serialize_fragments)
    from_bytes = staticmethod(parse_fragments)

    task: WriteTask

    def run(self, batches: Iterable[pa.RecordBatch]) -> list[Fragment]:
        """Write the rows of one task to new data files, and return their fragments.

        Nothing refers to the files until the commit: a task that dies, or runs twice, leaves
        orphans at most.
        """
        checked = InputCheck().checked(batches)
        rows = _converted(checked, schema_to_arrow(self.task.schema))
        return write_fragments(self.task, rows)


def _converted(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            yield convert_batch(_named(batch, schema), schema)


def _named(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with columns named as the table's, which may differ in case."""
    wanted = set(schema.names)
    if wanted.issubset(batch.schema.names):
        return batch
    lower = {name.lower(): name for name in schema.names}
    given = batch.schema.names
    names = [name if name in wanted else lower.get(name.lower(), name) for name in given]
    return batch.rename_columns(names)


# --- rows that do not belong there ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """The fragments of a `CheckedWrite`, how many rows did not satisfy its condition, and one of these."""

    fragments: tuple[Fragment, ...]
    refused_rows: int
    example: str


@dataclass(frozen=True, slots=True)
class CheckedWrite:
    """Writes rows and counts those that a condition is not true for; it pickles.

    ``predicate`` None: a last column says for which it is.  With such a row nothing will be committed, so
    no more is written.
    """

    write: TableWrite
    predicate: Predicate | None = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> CheckedRows:
        """Write the rows of one task up to the first batch with a row that is refused."""
        refused = _Refused()
        fragments = self.write.run(self._tested(batches, refused))
        return CheckedRows(tuple(fragments), refused.rows, refused.example)

    def to_bytes(self, answer: CheckedRows) -> bytes:
        """Return an answer as a message."""
        return serialize_numbered_fragments(answer.refused_rows, answer.fragments, answer.example)

    def from_bytes(self, message: bytes) -> CheckedRows:
        """Return the answer of a message; raises FormatError."""
        refused_rows, fragments, example = parse_numbered_fragments(message)
        return CheckedRows(fragments, refused_rows or 0, example)

    def _tested(
        self, batches: Iterable[pa.RecordBatch], refused: _Refused
    ) -> Iterator[pa.RecordBatch]:
        for given in batches:
            batch = given
            if self.predicate is None:
                passes = given.column(given.num_columns - 1)
                batch = given.select(list(range(given.num_columns - 1)))
            else:
                passes = self.predicate.test(given)
            refused.count(batch, passes)
            if not refused.rows:
                yield batch


class _Refused:
    """Rows that a condition is not true for: how many, and the first of them."""

    def __init__(self) -> None:
        self.rows = 0
        self.example = ""

    def count(self, batch: pa.RecordBatch, passes: pa.BooleanArray) -> None:
        found = batch.num_rows - passes.true_count
        if found and not self.rows:
            wrong = pc.invert(passes.fill_null(False))  # noqa: FBT003 - pyarrow's own
            (row,) = batch.filter(wrong).slice(0, 1).to_pylist()
            self.example = str(row)[:_SHOWN]
        self.rows += found


def accepted(written: Sequence[CheckedRows], condition: str) -> list[Fragment]:
    """Return the fragments that tasks wrote.

    Raises ArgumentError if the condition is not true for some rows, with their number and one of them.
    """
    refused = sum(each.refused_rows for each in written)
    if refused:
        example = next(each.example for each in written if each.refused_rows)
        message = (
            f"{refused} rows of the DataFrame do not satisfy {condition}, for example {example}; nothing "
            "was written: filter them out, or say a condition that holds for them"
        )
        raise ArgumentError(message)
    return [fragment for each in written for fragment in each.fragments]


# --- the commit ---------------------------------------------------------------------------------------


def commit_fragments(
    plan: TablePlan, fragments: Sequence[Fragment], widen: RunColumns | None = None
) -> int:
    """Make one version of what all tasks wrote, and return its number.

    An append of no rows to a table makes no version, unless its columns change.  Two jobs that create the
    same table by appending both keep their rows: the later one appends.
    """
    return plan.once(lambda: _commit_fragments(plan, fragments, widen))


def _commit_fragments(
    plan: TablePlan, fragments: Sequence[Fragment], widen: RunColumns | None
) -> int:
    write, properties = plan.write, plan.properties
    if plan.evolution is not None:
        return plan.evolution.commit(
            fragments, widen, planned_ns=write.planned_ns, properties=properties
        ).version
    is_append = write.mode is WriteMode.APPEND
    if is_append and plan.base is not None and not fragments:
        return plan.base.version
    policy = CommitPolicy(stable_row_ids=plan.stable_row_ids and plan.base is None)
    try:
        return commit_write(write, fragments, properties, policy).version
    except AlreadyExistsError:
        if not is_append:
            raise
        return commit_write(_plan_late_append(write), fragments, properties).version


def _plan_late_append(plan: WritePlan) -> WritePlan:
    """Return the plan of an append to the table that another job created while this one wrote.

    Field ids are numbered depth first, so equal schemas have equal ids.  Raises AlreadyExistsError
    if the other table has another schema.
    """
    late = plan_write(
        plan.task.store,
        schema_to_arrow(plan.table_schema),
        WriteMode.APPEND,
        version=plan.task.version,
        limits=plan.task.limits,
    )
    if late.table_schema.fields != plan.table_schema.fields:
        message = f"another writer created a table of another schema at {late.task.store.uri!r}"
        raise AlreadyExistsError(message)
    return late
