"""Adding a column of embeddings: one more file a fragment, one commit, and a note in the metadata of the column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

import pyarrow as pa

from pennon.errors import ArgumentError, UnsupportedError
from pennon.index.vector.metric import check_metric, metric_of
from pennon.ops.columns.add import AddPlan, commit_add, plan_columns
from pennon.ops.columns.checkpoint import Checkpoint, CheckpointedTask
from pennon.ops.columns.finished import Notes
from pennon.ops.columns.names import number_new_columns
from pennon.ops.columns.task import ColumnsTask, read_inputs
from pennon.ops.embed.fingerprint import FINGERPRINT_TYPE, is_text, plain_values
from pennon.ops.embed.makers import Embedder, NewVectors, Progress, RowCounter
from pennon.ops.embed.models import EmbeddingModel
from pennon.ops.embed.remembered import KEY, RememberedEmbedding, check_source
from pennon.ops.embed.vectors import Vectors, vector_type
from pennon.ops.retry import CONFLICT_RETRIES, with_retries
from pennon.ops.run_tasks import Task, run_tasks
from pennon.scan.projection import Projection, plan_scan_projection
from pennon.scan.read.tasks import live_row_counts
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.blob import has_blobs_v2
from pennon.schema.project import parse_path, resolve
from pennon.schema.version import V0_1
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.storage_version import storage_version

R = TypeVar("R")

BATCH_ROWS: Final = 1024
"""Rows that a model gets at once, unless the caller says otherwise."""
HOWEVER_LONG: Final = timedelta(days=365)
"""A conflict is retried however long the model took: only fragments that changed are embedded again."""
_PROBE: Final = "dimension"
"""The text that an empty table asks a model for the dimension of its vectors."""


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """An embedding that is asked for: its source, its model and its columns.

    ``fingerprint``: the name of the column of fingerprints; None: changes of the source are not tracked.
    """

    source: str
    model: EmbeddingModel
    column: str
    fingerprint: str | None
    metric: str = "cosine"
    is_normalized: bool = False
    batch_rows: int = BATCH_ROWS

    @classmethod
    def of(
        cls,
        source: str,
        model: EmbeddingModel,
        column: str | None,
        metric: str,
        batch_rows: int | None,
        *,
        normalize: bool,
        track_changes: bool,
    ) -> EmbedRequest:
        """Return the request of a caller.  Raises ArgumentError for a metric or a number of rows that makes no sense."""
        for each in (source, column):
            _check_name(each)
        check_metric(metric_of(metric), pa.float32())
        if batch_rows is not None and batch_rows < 1:
            message = f"batch_size must be at least 1, got {batch_rows}"
            raise ArgumentError(message)
        name = column or f"{parse_path(source)[-1].replace('.', '_')}_vector"
        prints = f"{name}_hash" if track_changes else None
        return cls(source, model, name, prints, metric.lower(), normalize, batch_rows or BATCH_ROWS)


def _check_name(given: object) -> None:
    if given is not None and not isinstance(given, str):
        message = f"columns are named by text, got {given!r}"
        raise TypeError(message)


@dataclass(frozen=True, slots=True)
class EmbedPlan:
    """New columns of a version, and the task that writes them."""

    add: AddPlan
    task: ColumnsTask


def plan_embed(
    snapshot: Snapshot, request: EmbedRequest, counter: RowCounter | None = None
) -> EmbedPlan:
    """Plan to add the columns of an embedding.

    Raises NotFoundError for a source that is not there, ArgumentError for one that is neither text nor bytes, and where
    the dimension cannot be known; InvalidSchemaError for names; UnsupportedError for file version 0.1.
    """
    if storage_version(snapshot.manifest) == V0_1:
        message = "a table of file version 0.1 keeps no vectors that are NULL; convert it to a newer file version to embed"
        raise UnsupportedError(message)
    source = check_source(snapshot.manifest.schema, request.source)
    inputs = plan_scan_projection(snapshot.manifest.schema, [source])
    dimension = request.model.dimension or _dimension(snapshot, inputs, request)
    embedder = Embedder(
        request.model, source, request.column, request.fingerprint, dimension, request.is_normalized
    )
    maker = NewVectors(embedder, inputs, counter or RowCounter(None, ()))
    schema = _new_fields(snapshot, request, source, dimension)
    add = plan_columns(snapshot, schema, maker, request.batch_rows)
    if add.task is None:
        message = "an embedding adds a column"
        raise ArgumentError(message)
    return EmbedPlan(add, replace(add.task, with_blobs=has_blobs_v2(inputs.read)))


def _new_fields(
    snapshot: Snapshot, request: EmbedRequest, source: str, dimension: int
) -> pa.Schema:
    """Return the new columns, the first with its note."""
    fields = [pa.field(request.column, vector_type(dimension))]
    if request.fingerprint is not None:
        fields.append(pa.field(request.fingerprint, FINGERPRINT_TYPE))
    numbered = number_new_columns(snapshot.manifest, pa.schema(fields)).fields
    note = RememberedEmbedding(
        model=request.model.name,
        version=request.model.version,
        source=source,
        source_id=resolve(snapshot.manifest.schema, source)[-1].id,
        vector_id=numbered[0].id,
        fingerprint=request.fingerprint,
        fingerprint_id=None if request.fingerprint is None else numbered[1].id,
        dimension=dimension,
        metric=request.metric,
        normalized=request.is_normalized,
    )
    fields[0] = fields[0].with_metadata({KEY: note.to_json()})
    return pa.schema(fields)


def _dimension(snapshot: Snapshot, inputs: Projection, request: EmbedRequest) -> int:
    """Return the dimension of the vector of the first value; of an empty table, that of a text."""
    model = request.model
    first = _first_value(snapshot, inputs, request.source)
    if first is None:
        kind = field_to_arrow(resolve(snapshot.manifest.schema, request.source)[-1]).type
        if not is_text(kind):
            message = (
                f"column {request.source!r} has no value to try the model on; say how many numbers a vector has: "
                f"EmbeddingModel(function, {model.name!r}, dimension=...)"
            )
            raise ArgumentError(message)
        first = pa.array([_PROBE])
    return int(Vectors.of(model.embed(first), 1, None, model.name).rows.shape[1])


def _first_value(snapshot: Snapshot, inputs: Projection, source: str) -> pa.Array[Any] | None:
    for fragment in snapshot.manifest.fragments:
        rows = read_inputs(
            snapshot, fragment, inputs, BATCH_ROWS, with_blobs=has_blobs_v2(inputs.read)
        )
        for batch in rows:
            values = plain_values(batch.column(0), source).drop_null()
            if len(values):
                return values.slice(0, 1)
    return None


class EachOnce(Generic[R]):
    """Runs a task for each fragment, but not again for fragments that are as they were when it ran before."""

    def __init__(
        self, task: Task[R], names: Sequence[str], done: dict[str, R], counter: RowCounter
    ) -> None:
        """``names``: what tells the results of fragments apart; ``done``: the results so far, by these names."""
        self._task, self._names, self._done, self._counter = task, names, done, counter

    def run(self, number: int) -> R:
        """Return the result for the fragment of that number."""
        name = self._names[number]
        if name not in self._done:
            self._done[name] = self._task.run(number)
        self._counter.finish(number)
        return self._done[name]


def result_names(task: ColumnsTask, said: str) -> list[str]:
    """Return the names of the results of all fragments: they differ where a result would."""
    notes = Notes(None, task.files, said)
    return [notes.name(each) for each in task.snapshot.manifest.fragments]


def add_embedding(
    snapshot: Snapshot,
    request: EmbedRequest,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Add the columns of an embedding; return the version made.

    Where another writer changed rows meanwhile, only fragments that changed are embedded again.
    """
    done: dict[str, Fragment] = {}

    def execute(now: Snapshot) -> Manifest:
        counter = RowCounter(progress, live_row_counts(now))
        plan = plan_embed(now, request, counter)
        task: Task[Fragment] = plan.task
        if checkpoint is not None:
            task = CheckpointedTask(plan.task, checkpoint)
        names = result_names(plan.task, request.model.title)
        once = EachOnce(task, names, done, counter)
        fragments = run_tasks(once, len(names), what="Embedding", threads=1)
        return commit_add(plan.add, fragments)

    manifest = with_retries(execute, snapshot, CONFLICT_RETRIES, HOWEVER_LONG)
    if checkpoint is not None:
        checkpoint.clear()
    return manifest
