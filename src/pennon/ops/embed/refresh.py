"""Refreshing a column of embeddings: rows that came since, and rows whose source changed, are embedded; one commit.

::

    a fragment      source and fingerprints are read, and compared: no stale row, nothing is done
    stale rows      their vectors are made; the columns of the fragment are written anew, in one file more
    commit          an update that rewrites columns: rows stay where they are, with their ids

Appended rows have neither vector nor fingerprint.  Rows that an update, a merge or a compaction moved bring both along, so
those whose source is another one now are found, whoever wrote them, and on any branch.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import FieldId, FragmentId
from pennon.errors import ArgumentError
from pennon.ops.columns.checkpoint import Checkpoint, CheckpointedTask
from pennon.ops.columns.column_file import ColumnFiles
from pennon.ops.columns.finished import Notes
from pennon.ops.columns.task import ColumnsTask, read_inputs
from pennon.ops.commit import commit_on
from pennon.ops.embed.embed import BATCH_ROWS, HOWEVER_LONG, EachOnce, result_names
from pennon.ops.embed.fingerprint import fingerprints, plain_values
from pennon.ops.embed.makers import Embedder, Progress, RefreshedVectors, RowCounter, StaleRule
from pennon.ops.embed.models import EmbeddingModel, model_of, registered_model
from pennon.ops.embed.remembered import EmbeddedColumn, RememberedEmbedding, check_source, find_embedded
from pennon.ops.retry import CONFLICT_RETRIES, with_retries
from pennon.ops.run_tasks import run_tasks
from pennon.scan.projection import Projection, plan_scan_projection
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import live_row_counts
from pennon.scan.snapshot import Snapshot
from pennon.schema.blob import has_blobs_v2
from pennon.schema.field import Schema
from pennon.schema.project import quoted
from pennon.table.commit.options import LONG_AGO
from pennon.table.field_ids import in_newest_file
from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import parse_fragment_bytes, serialize_fragment_bytes
from pennon.table.manifest import Manifest
from pennon.table.operations import Update, UpdateMode
from pennon.table.roaring import serialize_roaring
from pennon.table.storage_version import storage_version

Check: TypeAlias = Literal["sources", "vectors", "both", "all"]
"""How stale rows are found: by the fingerprint of their source, by a vector that is NULL, by both; or all rows are."""
_CHECKS: Final = ("sources", "vectors", "both", "all")
_SCAN_ROWS: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """A refresh that is asked for; None: as the column remembers it, or its only one."""

    column: str | None = None
    model: EmbeddingModel | None = None
    source: str | None = None
    check: Check | None = None
    batch_rows: int = BATCH_ROWS

    def __post_init__(self) -> None:
        """Check the arguments."""
        if self.check is not None and self.check not in _CHECKS:
            message = f"check is one of {', '.join(map(repr, _CHECKS))}, not {self.check!r}"
            raise ArgumentError(message)
        if self.batch_rows < 1:
            message = f"batch_size must be at least 1, got {self.batch_rows}"
            raise ArgumentError(message)


@dataclass(frozen=True, slots=True)
class RefreshedFragment:
    """A fragment, with a new file if rows of it were stale; ``offsets``: the physical offsets of these."""

    fragment: Fragment
    offsets: bytes = b""
    rows: int = 0

    def to_bytes(self) -> bytes:
        """Return the result as bytes, as executors send it."""
        head = struct.pack("<QQ", self.rows, len(self.offsets))
        return head + self.offsets + serialize_fragment_bytes(self.fragment)

    @classmethod
    def from_bytes(cls, message: bytes) -> RefreshedFragment:
        """Return the result in bytes of `to_bytes`; raises FormatError."""
        rows, size = struct.unpack_from("<QQ", message)
        offsets = message[16 : 16 + size]
        return cls(parse_fragment_bytes(message[16 + size :]), offsets, rows)


@dataclass(frozen=True, slots=True)
class RefreshTask:
    """Refreshes fragments of a version; it pickles if its model does.

    ``few``: the columns that tell which rows are stale.  ``notes``: where written fragments are noted; ``written``: those
    that were noted before.
    """

    to_bytes = staticmethod(RefreshedFragment.to_bytes)
    from_bytes = staticmethod(RefreshedFragment.from_bytes)

    columns: ColumnsTask
    few: Projection
    rule: StaleRule
    checkpoint: Checkpoint | None = field(default=None, repr=False)
    notes: Notes | None = None
    written: Mapping[FragmentId, Fragment] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Return how many fragments there are."""
        return self.columns.count

    def run(self, number: int) -> RefreshedFragment:
        """Return the fragment of that number, with its stale rows embedded."""
        fragment = self.columns.snapshot.manifest.fragments[number]
        stale = self.stale_rows(fragment)
        if not len(stale):
            return RefreshedFragment(fragment)
        schema = self.columns.snapshot.manifest.schema
        made = in_newest_file(
            self._write(fragment, number), frozenset(each.id for each in schema.walk())
        )
        live = FragmentReader(self.columns.snapshot, fragment).live_rows()
        offsets = live.to_physical(stale).astype(np.uint32)
        return RefreshedFragment(made, serialize_roaring(offsets), len(stale))

    def _write(self, fragment: Fragment, number: int) -> Fragment:
        """Return the fragment with a file more, written now or before."""
        if fragment.id in self.written:
            return self.written[fragment.id]
        if self.checkpoint is not None:
            return CheckpointedTask(self.columns, self.checkpoint).run(number)
        made = self.columns.run(number)
        if self.notes is not None:
            self.notes.note(fragment, made)
        return made

    def stale_rows(self, fragment: Fragment) -> Int64Array:
        """Return the offsets of the stale rows of a fragment among its live rows, ascending."""
        embedder = self._embedder
        found, start = [np.empty(0, np.int64)], 0
        batches = read_inputs(
            self.columns.snapshot, fragment, self.few, _SCAN_ROWS, with_blobs=self.columns.with_blobs
        )
        for batch in batches:
            values = plain_values(batch.column(0), embedder.source)
            rest = batch.columns[1:]
            old = rest.pop() if embedder.fingerprint is not None else None
            stale = self.rule.stale(values, fingerprints(values), old, rest[0] if rest else None)
            found.append(np.flatnonzero(stale) + start)
            start += batch.num_rows
        return np.concatenate(found)

    @property
    def _embedder(self) -> Embedder:
        maker = self.columns.maker
        if not isinstance(maker, RefreshedVectors):
            message = "a refresh has a maker of refreshed vectors"
            raise TypeError(message)
        return maker.embedder


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
    columns = ColumnsTask(snapshot, files, maker, request.batch_rows, with_blobs)
    return RefreshTask(columns, plan_scan_projection(schema, few), rule, checkpoint)


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


def refresh(
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
    changed = [each for each in found if each.rows]
    if not changed:
        return snapshot.manifest, 0
    offsets = {}
    if snapshot.manifest.has_stable_row_ids:  # rows know the version that changed them
        offsets = {each.fragment.id: each.offsets for each in changed}
    update = Update(
        (),
        tuple(each.fragment for each in changed),
        (),
        fields_modified=_ids(task.columns.files.schema),
        mode=UpdateMode.REWRITE_COLUMNS,
        updated_offsets=offsets,
    )
    manifest = commit_on(snapshot, update, properties=properties, planned_ns=LONG_AGO)
    return manifest, sum(each.rows for each in changed)


def _ids(schema: Schema) -> tuple[FieldId, ...]:
    return tuple(each.id for each in schema.walk())
