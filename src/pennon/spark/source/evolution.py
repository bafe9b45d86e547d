"""An append, or a merge, that makes the table's schema grow: new columns and wider numbers, in one version.

A ``Merge`` names all fragments, those with the new rows among them, and brings the schema along, so no
version shows one without the other.  What is new reads as NULL in old fragments: columns lie in no file.
A column whose numbers get wider, and before file version 2.2 a struct that gets a field, is written anew
for each old fragment; nobody else may add rows meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

import pyarrow as pa

from pennon.core.units import FieldId, FragmentId
from pennon.errors import SchemaMismatchError, UnsupportedError
from pennon.ops.columns.alter import AlterTask
from pennon.ops.columns.column_file import ColumnFiles
from pennon.ops.columns.task import ColumnsTask, Place, rows_at_once
from pennon.ops.commit import commit_on
from pennon.ops.retry import with_retries
from pennon.ops.run_tasks import run_tasks
from pennon.scan.projection import Projection, plan_scan_projection
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow, schema_from_arrow, schema_to_arrow
from pennon.schema.check import check_writable, is_packed
from pennon.schema.field import Field, Schema
from pennon.schema.version import V0_1, Ability, FileVersion
from pennon.spark.arrow_convert import convert_column
from pennon.spark.history import HistoryEntry, written_metrics
from pennon.table.field_ids import highest_field_id
from pennon.table.fields_wire import carry_over
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import Merge
from pennon.table.storage_version import storage_version

_OF_TYPES: Final = ("ARROW:extension:", "lance-encoding:")

RunColumns = Callable[[AlterTask], Sequence[Fragment]]
"""Writes the columns of all fragments of a task, here or on executors."""


@dataclass(frozen=True, slots=True)
class WiderColumns:
    """Top-level columns as types that hold all their values; structs get fields of NULLs.

    A `pennon.ops.columns.task.Maker`: the n-th input becomes the n-th of ``fields``.
    """

    inputs: Projection
    fields: tuple[Field, ...]
    in_order: bool = field(default=False, init=False)

    def make(self, batch: pa.RecordBatch, _: Place) -> pa.RecordBatch:
        """Return the columns of a batch as they are stored then."""
        shown = [field_to_arrow(each) for each in self.fields]
        columns = [convert_column(a, f) for a, f in zip(batch.columns, shown, strict=True)]
        return pa.RecordBatch.from_arrays(columns, names=[each.name for each in shown])


@dataclass(frozen=True, slots=True)
class Evolution:
    """The schema that a version gets, and what must be written anew for it; it pickles.

    ``task`` is None where nothing must.
    """

    snapshot: Snapshot
    schema: Schema
    task: AlterTask | None

    def commit(
        self,
        new: Sequence[Fragment],
        run: RunColumns | None,
        *,
        planned_ns: int,
        properties: Mapping[str, str],
    ) -> Manifest:
        """Make the new rows and the schema one version; columns are written here unless ``run`` does it.

        ``properties`` go to those of the transaction.
        """
        entry = HistoryEntry("WRITE", {"mode": "Append"}, written_metrics(new))
        told = {**entry.properties(), **properties}
        return commit_evolution(
            self, new, run or widen_here, properties=told, planned_ns=planned_ns
        )


def plan_evolution(snapshot: Snapshot, arrow: pa.Schema) -> Evolution | None:
    """Plan what makes a table's columns those of ``arrow``: the same, wider or grown ones, and new ones.

    None if they are that already.  Raises UnsupportedError for what the file version cannot hold.
    """
    manifest = snapshot.manifest
    schema, version = manifest.schema, storage_version(manifest)
    if arrow.equals(schema_to_arrow(schema)):
        return None
    if version == V0_1:
        message = (
            "a table of file version 0.1 gets no columns and no other types by an append or a merge; "
            "overwrite it with overwriteSchema, or convert it"
        )
        raise UnsupportedError(message)
    evolved = _evolved_schema(manifest, arrow)
    check_writable(evolved, version)
    pairs = [
        (old, new)
        for old, new in zip(schema.fields, evolved.fields, strict=False)
        if _is_rewritten(old, new, version)
    ]
    return Evolution(snapshot, evolved, _plan_rewrite(snapshot, evolved, pairs))


def _is_rewritten(old: Field, new: Field, version: FileVersion) -> bool:
    """Return whether files must hold a column anew; one that was void has no values, and needs no file."""
    if old == new or old.logical_type == "null":
        return False
    return not version.holds(Ability.GROWN_STRUCTS) or not _ids(old) <= _ids(new)


def _plan_rewrite(
    snapshot: Snapshot, evolved: Schema, pairs: Sequence[tuple[Field, Field]]
) -> AlterTask | None:
    if not pairs or not snapshot.manifest.fragments:
        return None
    inputs = plan_scan_projection(Schema(tuple(old for old, _ in pairs)), None)
    new = Schema(tuple(new for _, new in pairs))
    files = ColumnFiles.of(snapshot, new, storage_version(snapshot.manifest))
    maker = WiderColumns(inputs, new.fields)
    columns = ColumnsTask(snapshot, files, maker, rows_at_once(inputs.arrow))
    return AlterTask(columns, evolved)


def _evolved_schema(manifest: Manifest, arrow: pa.Schema) -> Schema:
    """Return the schema with ids: what stays keeps its own, what is new or wider gets a new one."""
    schema, shown = manifest.schema, schema_to_arrow(manifest.schema)
    ids = map(FieldId, count(highest_field_id(manifest) + 1))
    wanted = schema_from_arrow(arrow).fields
    fields = [
        old
        if shown.field(at).equals(arrow.field(at), check_metadata=True)
        else _evolved(old, wanted[at], ids)
        for at, old in enumerate(schema.fields)
    ]
    fields += [each.renumbered(ids) for each in wanted[len(fields) :]]
    return replace(schema, fields=tuple(fields))


def _evolved(old: Field, new: Field, ids: Iterator[FieldId]) -> Field:
    if old.logical_type != new.logical_type:
        kept = {k: v for k, v in new.metadata.items() if not k.startswith(_OF_TYPES)}
        return replace(new, metadata=kept).renumbered(ids)
    if old.logical_type != "struct":
        pairs = zip(old.children, new.children, strict=True)
        return replace(old, children=tuple(_evolved(mine, other, ids) for mine, other in pairs))
    wanted = {child.name: child for child in new.children}
    children = [_evolved(child, wanted.pop(child.name), ids) for child in old.children]
    children += [child.renumbered(ids) for child in wanted.values()]
    if is_packed(old) and tuple(children) != old.children:
        message = f"column {old.name!r} is a packed struct, which stays as it is; add a column"
        raise UnsupportedError(message)
    return replace(old, children=tuple(children))


def _ids(top: Field) -> set[FieldId]:
    return {each.id for each in top.walk()}


def commit_evolution(
    plan: Evolution,
    new: Sequence[Fragment],
    run: RunColumns,
    *,
    properties: Mapping[str, str],
    planned_ns: int,
) -> Manifest:
    """Make the new rows and the schema one version.

    Where others added or changed rows meanwhile and left the schema alone, it follows them, unless columns
    were written anew.  Raises RetryableConflict else, and what `pennon.table.commit.loop.commit` raises.
    """
    if plan.task is not None:
        old = tuple(run(plan.task))
        operation = _merge(plan, plan.snapshot.manifest, old, new)
        return commit_on(plan.snapshot, operation, properties=properties, planned_ns=planned_ns)

    def execute(snapshot: Snapshot) -> Manifest:
        manifest = snapshot.manifest
        check_same_columns(plan.snapshot.manifest, manifest)
        operation = _merge(plan, manifest, manifest.fragments, new)
        return commit_on(snapshot, operation, properties=properties, planned_ns=planned_ns)

    return with_retries(execute, plan.snapshot)


def check_same_columns(planned: Manifest, now: Manifest) -> None:
    """Raise SchemaMismatchError if rows were written for other columns than a version has now.

    Ids that were free then may be taken now, too.
    """
    is_same = planned.schema == now.schema
    if not is_same or highest_field_id(planned) != highest_field_id(now):
        message = "another writer changed the table's columns meanwhile; write the rows again"
        raise SchemaMismatchError(message)


def _merge(
    plan: Evolution, manifest: Manifest, old: Iterable[Fragment], new: Iterable[Fragment]
) -> Merge:
    """Return what the commit will be; new fragments have ids that no old one has, until they get theirs."""
    first = manifest.last_fragment_id + 1
    added = (replace(each, id=FragmentId(first + at)) for at, each in enumerate(new))
    wire = carry_over(manifest.fields_wire, plan.schema)
    return Merge((*old, *added), plan.schema, wire, preserves_nullability=True)


def widen_here(task: AlterTask) -> Sequence[Fragment]:
    """Write columns that get wider on this machine's threads."""
    return run_tasks(task, task.count, what="Widening columns", threads=task.columns.threads)
