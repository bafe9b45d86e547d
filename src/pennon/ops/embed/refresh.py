"""Refreshing a column of embeddings: rows that came since, and rows whose source changed, are embedded; one commit.

::

    each fragment   source and fingerprints are read, and compared: no stale row, nothing is done
    stale rows      are embedded (`pennon.ops.embed.refresh_task`)
    commit          an update of columns, another one of rows that were moved, if there are both

Appended rows have neither vector nor fingerprint.  Rows that an update, a merge or a compaction moved bring both along, so
those whose source is another one now are found, whoever wrote them, and on any branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from pennon.core.units import FieldId, FragmentId
from pennon.errors import ArgumentError
from pennon.ops.columns.checkpoint import Checkpoint
from pennon.ops.columns.column_file import ColumnFiles
from pennon.ops.columns.task import ColumnsTask
from pennon.ops.commit import commit_on
from pennon.ops.embed.embed import BATCH_ROWS, HOWEVER_LONG, EachOnce, result_names
from pennon.ops.embed.makers import Embedder, Progress, RefreshedVectors, RowCounter, StaleRule
from pennon.ops.embed.models import EmbeddingModel, registered_model
from pennon.ops.embed.refresh_task import RefreshedFragment, RefreshTask
from pennon.ops.embed.remembered import (
    EmbeddedColumn,
    RememberedEmbedding,
    check_source,
    find_embedded,
)
from pennon.ops.retry import CONFLICT_RETRIES, with_retries
from pennon.ops.rows.change_rows import Change, Clause, plan_change
from pennon.ops.rows.deletion_vectors import Removals
from pennon.ops.run_tasks import run_tasks
from pennon.scan.plan.moved_rows import indices_now
from pennon.scan.projection import plan_scan_projection
from pennon.scan.read.tasks import live_row_counts
from pennon.scan.snapshot import Snapshot
from pennon.schema.blob import has_blobs_v2
from pennon.schema.field import Field, Schema
from pennon.schema.project import quoted
from pennon.table.commit.options import LONG_AGO
from pennon.table.indices import FRAGMENT_REUSE
from pennon.table.manifest import Manifest
from pennon.table.operations import Update, UpdateMode
from pennon.table.storage_version import storage_version

Check: TypeAlias = Literal["sources", "vectors", "both", "all"]
"""How stale rows are found: by the fingerprint of their source, by a vector that is NULL, by both; or all rows are."""
_CHECKS: Final = ("sources", "vectors", "both", "all")


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """A refresh that is asked for; None: as the column remembers it, or its only one."""

    column: str | None = None
    model: EmbeddingModel | None = None
    source: str | None = None
    check: Check | None = None
    batch_rows: int | None = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        if self.check is not None and self.check not in _CHECKS:
            message = f"check is one of {', '.join(map(repr, _CHECKS))}, not {self.check!r}"
            raise ArgumentError(message)
        if self.batch_rows is not None and self.batch_rows < 1:
            message = f"batch_size must be at least 1, got {self.batch_rows}"
            raise ArgumentError(message)


def plan_refresh(
    snapshot: Snapshot,
    request: RefreshRequest,
    counter: RowCounter | None = None,
    checkpoint: Checkpoint | None = None,
) -> RefreshTask:
    """Plan to refresh a column.

    Raises ArgumentError for a column that remembers no model, a source that is gone, and a model that is not the one
    remembered, NotFoundError for a model that this process does not know.
    """
    schema = snapshot.manifest.schema
    found = find_embedded(schema, request.column)
    source = check_source(schema, request.source) if request.source else found.find_source()
    rule = _rule(found, request.check)
    model = remembered_model(found, request.model)
    note = found.note
    embedder = Embedder(
        model, source, found.column, found.fingerprint, note.dimension, note.normalized
    )
    names = [found.column, *([] if found.fingerprint is None else [found.fingerprint])]
    written = Schema(tuple(each for each in schema.fields if each.name in names))
    inputs = plan_scan_projection(schema, [source, *map(quoted, names)])
    few = [source, *map(quoted, names if rule.by_vector else names[1:])]
    maker = RefreshedVectors(embedder, inputs, rule, counter or RowCounter(None, ()))
    files = ColumnFiles.of(snapshot, written, storage_version(snapshot.manifest))
    with_blobs = has_blobs_v2(inputs.read)
    columns = ColumnsTask(snapshot, files, maker, request.batch_rows or BATCH_ROWS, with_blobs)
    covered = _covered(snapshot, written.fields)
    return RefreshTask(
        columns,
        plan_change(snapshot, [Clause(Change.UPDATE, tuple(names))]),
        embedder,
        plan_scan_projection(schema, few),
        rule,
        covered,
        bool(covered) and any(each.name == FRAGMENT_REUSE for each in indices_now(snapshot)),
        checkpoint,
    )


def _covered(snapshot: Snapshot, fields: Sequence[Field]) -> frozenset[FragmentId]:
    """Return the fragments that an index on one of some fields covers."""
    if not snapshot.manifest.indices:
        return frozenset()
    ids = {(each.id,) for each in fields}
    found = (each.fragment_ids for each in indices_now(snapshot) if each.field_ids in ids)
    return frozenset[FragmentId]().union(*(each for each in found if each is not None))


def _rule(found: EmbeddedColumn, check: Check | None) -> StaleRule:
    if check is None:
        check = "vectors" if found.note.fingerprint is None else "sources"
    if check in ("sources", "both") and found.fingerprint is None:
        gone = found.note.fingerprint
        message = (
            f"changes of the source of column {found.column!r} are not tracked; check='vectors' embeds rows without a vector"
            if gone is None
            else f"column {gone!r}, which tells what the vectors of {found.column!r} were made from, is gone; check='vectors' "
            "embeds rows without a vector, check='all' all rows"
        )
        raise ArgumentError(message)
    return StaleRule(check in ("sources", "both"), check in ("vectors", "both"), check == "all")


def remembered_model(found: EmbeddedColumn, given: EmbeddingModel | None) -> EmbeddingModel:
    """Return the model of a column: the one given, else the registered one of the name that is remembered.

    Raises NotFoundError if this process knows no such model, ArgumentError for a model of another name or version.
    """
    note = found.note
    model = registered_model(note.model) if given is None else given
    if not model.is_named:
        return replace(model, name=note.model, version=note.version)
    is_same = model.name == note.model and model.version == note.version
    if not is_same or model.dimension not in (None, note.dimension):
        message = (
            f"column {found.column!r} was made by the model {_titled(note)}, and this is {model.title!r}"
            f"{'' if model.dimension is None else f' of {model.dimension} dimensions'}: vectors of two models do not "
            "compare; embed another column with it"
        )
        raise ArgumentError(message)
    return model


def _titled(note: RememberedEmbedding) -> str:
    title = f"{note.model} {note.version}".strip()
    return f"{title!r} of {note.dimension} dimensions"


def refresh_embedding(
    snapshot: Snapshot,
    request: RefreshRequest,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> tuple[Manifest, int]:
    """Embed stale rows; return the version made, or the one that there was, and how many rows were stale.

    Where another writer changed rows meanwhile, only fragments that changed are looked at again.
    """
    done: dict[str, RefreshedFragment] = {}

    def execute(now: Snapshot) -> tuple[Manifest, int]:
        counter = RowCounter(progress, live_row_counts(now))
        task = plan_refresh(now, request, counter, checkpoint)
        names = result_names(task.columns, repr(task.rule))
        once = EachOnce(task, names, done, counter)
        found = run_tasks(once, task.count, what="Refreshing embeddings", threads=1)
        return commit_refreshed(task, found)

    manifest, rows = with_retries(execute, snapshot, CONFLICT_RETRIES, HOWEVER_LONG)
    if checkpoint is not None:
        checkpoint.clear()
    return manifest, rows


def commit_refreshed(
    task: RefreshTask,
    found: Sequence[RefreshedFragment],
    properties: dict[str, str] | None = None,
) -> tuple[Manifest, int]:
    """Make refreshed fragments a version, unless no row was stale; return it, and how many rows were."""
    snapshot = task.columns.snapshot
    manifest, rows = snapshot.manifest, sum(each.rows for each in found)
    for operation in (_columns_update(task, found), _rows_update(task, found)):
        if operation is not None:
            manifest = commit_on(snapshot, operation, properties=properties, planned_ns=LONG_AGO)
    return manifest, rows


def _columns_update(task: RefreshTask, found: Sequence[RefreshedFragment]) -> Update | None:
    """Return the update of the fragments whose columns were written anew; None if there is none."""
    written = [each for each in found if each.rows and each.changed is None]
    if not written:
        return None
    offsets = {}
    if task.columns.snapshot.manifest.has_stable_row_ids:  # rows know the version that changed them
        offsets = {each.fragment.id: each.offsets for each in written}
    return Update(
        (),
        tuple(each.fragment for each in written),
        (),
        fields_modified=_ids(task.columns.files.schema),
        mode=UpdateMode.REWRITE_COLUMNS,
        updated_offsets=offsets,
    )


def _rows_update(task: RefreshTask, found: Sequence[RefreshedFragment]) -> Update | None:
    """Return the update of rows that were moved; None if there is none."""
    moved = [each.changed for each in found if each.changed is not None]
    if not moved:
        return None
    removals = Removals.of(removal for each in moved for removal in each.removals)
    return Update(
        removals.gone,
        removals.updated,
        tuple(fragment for each in moved for fragment in each.new),
        fields_preserved=_ids(task.columns.files.schema),
        mode=UpdateMode.REWRITE_ROWS,
    )


def _ids(schema: Schema) -> tuple[FieldId, ...]:
    return tuple(each.id for each in schema.walk())
