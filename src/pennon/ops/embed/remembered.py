"""The note on a vector column, in the metadata of its field: the model that made it, and the source column.

``pennon.embedding`` holds JSON, for example::

    {"format": 1, "model": "wordllama", "version": "0.4.0", "source": "title", "source_id": 1, "vector_id": 2,
     "fingerprint": "title_vector_hash", "fingerprint_id": 3, "dimension": 256, "metric": "cosine",
     "normalized": false}

Columns are found by their ids, so that they may be renamed; by their names where the vector column has another id than
it was given (rows that were written into another table).  ``fingerprint`` is null where changes are not tracked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from pennon.core.near_names import did_you_mean
from pennon.core.units import FieldId
from pennon.errors import ArgumentError, FormatError, NotFoundError
from pennon.index.vector.metric import metric_of
from pennon.ops.embed.fingerprint import is_bytes, is_text
from pennon.ops.embed.models import LONGEST_NAME
from pennon.schema.arrow import field_to_arrow
from pennon.schema.check import is_blob_v2
from pennon.schema.field import Field, Schema
from pennon.schema.project import resolve, walk_paths

KEY: Final = "pennon.embedding"
FORMAT: Final = 1
_LONGEST: Final = 1 << 16
"""A note with more bytes is none."""


@dataclass(frozen=True, slots=True)
class RememberedEmbedding:
    """A note on a vector column."""

    model: str
    version: str
    source: str
    source_id: int
    vector_id: int
    fingerprint: str | None
    fingerprint_id: int | None
    dimension: int
    metric: str
    normalized: bool

    def to_json(self) -> str:
        """Return the note as JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False)

    @classmethod
    def parse(cls, text: bytes, column: str) -> Self:
        """Return the note in JSON.  Raises FormatError for anything else."""
        try:
            given = json.loads(text) if len(text) <= _LONGEST else None
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, Mapping) or given.get("format") != FORMAT or not _fits(given):
            message = (
                f"the metadata {KEY!r} of column {column!r} is no note on an embedding of format {FORMAT}; embed the "
                "column anew, or take the metadata away (update_field_metadata)"
            )
            raise FormatError(message)
        return cls(**{name: given[name] for name in _KINDS})


_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "model": (str,),
    "version": (str,),
    "source": (str,),
    "source_id": (int,),
    "vector_id": (int,),
    "fingerprint": (str, type(None)),
    "fingerprint_id": (int, type(None)),
    "dimension": (int,),
    "metric": (str,),
    "normalized": (bool,),
}


def _fits(given: Mapping[str, Any]) -> bool:
    if any(type(given.get(name)) not in kinds for name, kinds in _KINDS.items()):
        return False
    try:
        metric_of(given["metric"])
    except ArgumentError:
        return False
    return bool(given["dimension"] > 0 and 0 < len(given["model"]) <= LONGEST_NAME)


@dataclass(frozen=True, slots=True)
class EmbeddedColumn:
    """A vector column of a table whose model is remembered, and the columns that belong to it, by their paths.

    ``source`` is None where the column that it was made from is gone, ``fingerprint`` where changes are not tracked, or that
    column is gone.  ``rival``: another column, which has the name that the source had, so that it may be meant.
    """

    column: str
    note: RememberedEmbedding
    source: str | None
    fingerprint: str | None
    rival: str | None
    is_text: bool

    @property
    def hidden(self) -> tuple[str, ...]:
        """Return the columns that a search does not show unasked."""
        return (self.column,) if self.fingerprint is None else (self.column, self.fingerprint)

    def find_source(self) -> str:
        """Return the source.  Raises ArgumentError if it is gone, or if it is not clear which column it is."""
        note = self.note
        if self.source is None:
            message = (
                f"column {self.column!r} was made from {note.source!r}, which the table does not have; name the column "
                "to embed (source=...)"
            )
            raise ArgumentError(message)
        if self.rival is not None:
            message = (
                f"column {self.column!r} was made from {note.source!r}, field {note.source_id}; that field is called "
                f"{self.source!r} now, and {self.rival!r} is another one: name the column to embed (source=...)"
            )
            raise ArgumentError(message)
        return self.source


def embedded_columns(schema: Schema) -> list[EmbeddedColumn]:
    """Return the columns of vectors whose models are remembered, without those whose notes cannot be read."""
    found = []
    for field in schema.fields:
        if KEY in field.metadata:
            try:
                found.append(_column(schema, field))
            except FormatError:
                continue
    return found


def find_embedded(schema: Schema, column: str | None) -> EmbeddedColumn:
    """Return the embedded column of a name, or the only one.

    Raises ArgumentError for a column without a note, and where there is none, or several, and none is named; FormatError
    for a note that cannot be read.
    """
    names = [field.name for field in schema.fields if KEY in field.metadata]
    if column is None and len(names) == 1:
        column = names[0]
    if column is None:
        message = (
            f"name the column of vectors: the table has {len(names)} whose models are remembered, {', '.join(names)}"
            if names
            else "the table has no column of vectors whose model is remembered; embed('…', model) adds one"
        )
        raise ArgumentError(message)
    if column not in names:
        message = f"column {column!r} does not remember a model; those that do: {', '.join(names) or '(none)'}{did_you_mean(column, names)}"
        raise ArgumentError(message)
    return _column(schema, next(field for field in schema.fields if field.name == column))


def _column(schema: Schema, field: Field) -> EmbeddedColumn:
    note = RememberedEmbedding.parse(bytes(field.metadata[KEY]), field.name)
    is_of_table = note.vector_id == field.id
    ids = {each.id: path for path, each in walk_paths(schema)} if is_of_table else {}
    by_id, by_name = (
        _source_among(schema, ids.get(FieldId(note.source_id))),
        _source_among(schema, note.source),
    )
    source = by_id or by_name
    fingerprint = None
    if note.fingerprint is not None and note.fingerprint_id is not None:
        named = note.fingerprint if note.fingerprint in schema.names else None
        fingerprint = _fingerprint_among(schema, ids.get(FieldId(note.fingerprint_id)))
        fingerprint = fingerprint or _fingerprint_among(schema, named)
    is_of_text = True
    if source is not None:
        last = resolve(schema, source)[-1]
        is_of_text = not is_blob_v2(last) and is_text(field_to_arrow(last).type)
    rival = by_name if by_id and by_name and _id(schema, by_id) != _id(schema, by_name) else None
    return EmbeddedColumn(field.name, note, source, fingerprint, rival, is_of_text)


def _id(schema: Schema, path: str) -> FieldId:
    return resolve(schema, path)[-1].id


def _source_among(schema: Schema, path: str | None) -> str | None:
    """Return the path of a column if it is there and can be embedded."""
    try:
        return None if path is None else check_source(schema, path)
    except (ArgumentError, NotFoundError):
        return None


def _fingerprint_among(schema: Schema, path: str | None) -> str | None:
    """Return the path of a column if it holds fingerprints."""
    kinds = {each.name: each.logical_type for each in schema.fields}
    return path if path is not None and kinds.get(path) == "int64" else None


def check_source(schema: Schema, path: str) -> str:
    """Return the path of a column that can be embedded.

    Raises NotFoundError for a column that is not there, ArgumentError for another type.
    """
    try:
        field = resolve(schema, path)[-1]
    except ArgumentError as error:
        raise NotFoundError(str(error)) from None
    kind = field_to_arrow(field).type
    if is_blob_v2(field) or is_text(kind) or is_bytes(kind):
        return path
    message = f"column {path!r} is {kind}; texts and binary values are embedded"
    raise ArgumentError(message)


def notes_of(schema: Schema) -> dict[str, dict[str, Any]]:
    """Return the embedded columns, each with its note; its source and fingerprint are named as they are called now."""
    return {each.column: _shown(each) for each in embedded_columns(schema)}


def _shown(found: EmbeddedColumn) -> dict[str, Any]:
    note = found.note
    return {
        "model": note.model,
        "version": note.version,
        "source": found.source or note.source,
        "fingerprint": found.fingerprint,
        "dimension": note.dimension,
        "metric": note.metric,
        "normalized": note.normalized,
    }
