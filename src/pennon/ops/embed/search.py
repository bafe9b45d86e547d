"""Searches by a text: the query is embedded by the remembered model, and looked for among vectors, texts, or both.

::

    vector    the nearest vectors of an embedded column      needs its model; an index if there is one
    text      the best rows of a full-text search            needs a full-text index
    hybrid    both, their ranks made one list                what ``auto`` does where both can be done
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from pennon.errors import ArgumentError
from pennon.ops.embed.models import EmbeddingModel
from pennon.ops.embed.refresh import remembered_model
from pennon.ops.embed.remembered import EmbeddedColumn, embedded_columns, find_embedded
from pennon.ops.embed.vectors import Vectors
from pennon.scan.answer import Answer, answer_search
from pennon.scan.plan.query import ScanOptions, parse_columns, parse_predicate
from pennon.scan.plan.row_search import RowSearch, TextSearch
from pennon.scan.plan.vector_query import (
    VectorColumn,
    VectorSearch,
    column_of,
    vector_columns,
    vector_search,
)
from pennon.scan.search.fusion import CONSTANT, Fusion
from pennon.scan.search.text_columns import text_paths
from pennon.scan.search.vector_indices import find_index
from pennon.scan.snapshot import Snapshot

Mode: TypeAlias = Literal["auto", "vector", "text", "hybrid"]
_MODES: Final = ("auto", "vector", "text", "hybrid")
_LEAST_CANDIDATES: Final = 40
_CANDIDATES: Final = 4
"""A hybrid search asks each of its two searches for this many times the wanted rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search as a caller asks for it; see `LanceDataset.search`."""

    query: Any
    k: int = 10
    mode: Mode = "auto"
    column: str | None = None
    text_columns: Sequence[str] | None = None
    model: EmbeddingModel | None = None
    columns: Sequence[str] | Mapping[str, str] | None = None
    filter: Any = None
    prefilter: bool = True
    offset: int = 0
    candidates: int | None = None
    constant: float = CONSTANT
    with_row_id: bool = False
    with_row_address: bool = False
    fast_search: bool = False
    nprobes: int | None = None
    refine_factor: int | None = None
    ef: int | None = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        if self.mode not in _MODES:
            message = f"mode is one of {', '.join(map(repr, _MODES))}, not {self.mode!r}"
            raise ArgumentError(message)
        for name in ("columns", "text_columns"):
            if isinstance(getattr(self, name), str):
                message = f"{name} is a list of names, not {getattr(self, name)!r}"
                raise ArgumentError(message)
        for name, least in (("k", 1), ("offset", 0)):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < least:
                message = f"{name} is a whole number, {least} or more, not {getattr(self, name)!r}"
                raise ArgumentError(message)

    @property
    def is_text(self) -> bool:
        """Return whether the query is a text."""
        return isinstance(self.query, str)

    @property
    def is_value(self) -> bool:
        """Return whether the query is a value that a model embeds; else it is a vector."""
        return isinstance(self.query, (str, bytes, bytearray, memoryview))


@dataclass(frozen=True, slots=True, eq=False)
class SearchPlan:
    """A search of a version that is planned: the options of its scan, and what was chosen, in words."""

    snapshot: Snapshot
    options: ScanOptions
    chosen: tuple[str, ...]

    @property
    def answer(self) -> Answer[Any]:
        """Return the answer, which reads the rows."""
        return answer_search(self.snapshot, self.options)

    def explain(self, uri: str) -> str:
        """Return what was chosen, and the plan of the scan."""
        plan = self.answer.explain(uri, verbose=False)
        return "\n".join([*self.chosen, plan])


def plan_search(snapshot: Snapshot, request: SearchRequest) -> SearchPlan:
    """Plan a search.

    Raises ArgumentError for one that cannot be answered, NotFoundError for a model that this process does not know.
    """
    near = _near(snapshot, request)
    texts = _texts(snapshot, request)
    if near is None and texts is None:
        raise ArgumentError(_nothing_to_search(snapshot, request))
    fast = request.fast_search
    said: list[str] = []
    vectors = text = None
    rows = request.k + request.offset
    most = rows if near is None or texts is None else _candidates(request, rows)
    if near is not None:
        vectors, words = near.search(snapshot, request, most)
        vectors = replace(vectors, prefilter=request.prefilter, is_fast=fast)
        said.append(words)
    if texts is not None:
        text = TextSearch(
            request.query,
            None if request.text_columns is None else tuple(texts),
            prefilter=request.prefilter,
            is_fast=fast,
        )
        said.append(f"text: full-text search of {', '.join(texts)}")
    search: RowSearch
    if vectors is not None and text is not None:
        fusion = Fusion.of(rows, most, request.constant)
        search = fusion.search(vectors, text)
        said.append(f"fused by rank: {most} candidates of each, constant {fusion.constant:g}")
    else:
        search = vectors or text  # type: ignore[assignment]
    return SearchPlan(snapshot, _options(snapshot, request, search), tuple(said))


def _candidates(request: SearchRequest, rows: int) -> int:
    if request.candidates is not None:
        return max(request.candidates, rows)
    return max(_CANDIDATES * rows, _LEAST_CANDIDATES)


def _options(snapshot: Snapshot, request: SearchRequest, search: RowSearch) -> ScanOptions:
    columns = request.columns
    options = ScanOptions(
        predicate=None
        if request.filter is None
        else parse_predicate(snapshot, request.filter, search=search),
        limit=request.k,
        offset=request.offset,
        with_row_id=request.with_row_id,
        with_row_address=request.with_row_address,
        blobs_as_bytes=False,
        search=search,
    )
    if isinstance(columns, Mapping):
        stored, expressions = parse_columns(snapshot, columns, search=search)
        return replace(options, columns=stored, expressions=expressions, order=tuple(columns))
    if columns is not None:
        return replace(options, columns=tuple(columns))
    schema = snapshot.manifest.schema
    hidden = {name for each in embedded_columns(schema) for name in each.hidden}
    if isinstance(search, VectorSearch):
        hidden.add(search.column.path)
    return replace(options, columns=tuple(n for n in schema.names if n not in hidden))


# --- vectors ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Near:
    """A column of vectors to search; ``embedded`` is None where it remembers no model."""

    column: str
    embedded: EmbeddedColumn | None
    model: EmbeddingModel | None

    def search(
        self, snapshot: Snapshot, request: SearchRequest, rows: int
    ) -> tuple[VectorSearch, str]:
        """Return the search for rows near the query, and how it is done, in words."""
        found = column_of(snapshot, self.column)
        vector = self._vector(request, found)
        given = {name: getattr(request, name) for name in ("nprobes", "refine_factor", "ef")}
        asked = vector_search(snapshot, self.column, vector, rows, **given)
        index = find_index(snapshot, asked)
        if index is None and self.embedded is not None:
            asked = replace(
                asked,
                metric=vector_search(
                    snapshot, self.column, vector, rows, metric=self.embedded.note.metric
                ).metric,
            )
        metric = index.metric if index is not None else asked.metric
        how = "all vectors compared" if index is None else f"index {index.name!r}"
        by = "" if self.model is None else f", query embedded by {self.model.title!r}"
        return asked, f"vector: column {self.column!r}, {how}, metric {metric or 'l2'}{by}"

    def _vector(self, request: SearchRequest, column: VectorColumn) -> Any:
        if self.model is None:
            return request.query
        query = request.query if request.is_text else bytes(request.query)
        answer = self.model.embed_query(query)
        if getattr(answer, "ndim", 2) == 1 and hasattr(answer, "reshape"):
            answer = answer.reshape(1, -1)  # an encoder of queries may return one vector
        made = Vectors.of(answer, 1, column.dimension, self.model.name)
        if self.embedded is not None and self.embedded.note.normalized:
            made = made.normalized()
        if not made.valid[0]:
            message = f"the embedding model {self.model.name!r} made no vector of the query {_short(query)}; mode='text' needs none"
            raise ArgumentError(message)
        return made.rows[0]


def _short(query: str | bytes) -> str:
    return (
        repr(query)
        if len(query) <= 40
        else f"of {len(query)} {'letters' if isinstance(query, str) else 'bytes'}"
    )


def _near(snapshot: Snapshot, request: SearchRequest) -> _Near | None:
    """Return the column of vectors to search; None if there is none to choose, or none is wanted."""
    if request.mode == "text":
        return None
    schema = snapshot.manifest.schema
    known = embedded_columns(schema)
    if request.column is not None:
        if all(each.column != request.column for each in known):
            return _plain_column(snapshot, request, request.column)
        found = find_embedded(schema, request.column)
    else:
        fitting = (
            known if not request.is_value else [e for e in known if e.is_text == request.is_text]
        )
        if len(fitting) > 1:
            names = ", ".join(each.column for each in fitting)
            message = f"name the column of vectors to search (column=...): {names} remember models"
            raise ArgumentError(message)
        if not fitting:
            only = None if request.is_value and request.model is None else _only_vectors(snapshot)
            return None if only is None else _plain_column(snapshot, request, only)
        found = fitting[0]
    model = remembered_model(found, request.model) if request.is_value else None
    return _Near(found.column, found, model)


def _plain_column(snapshot: Snapshot, request: SearchRequest, column: str) -> _Near:
    """Return a column that remembers no model.  Raises ArgumentError if the query needs one, and none was passed."""
    column_of(snapshot, column)
    if request.is_value and request.model is None:
        message = f"column {column!r} remembers no model: pass the one that made it (model=...), or a vector as the query"
        raise ArgumentError(message)
    return _Near(column, None, request.model if request.is_value else None)


def _only_vectors(snapshot: Snapshot) -> str | None:
    """Return the only column of vectors.  Raises ArgumentError if there are several."""
    found = vector_columns(snapshot)
    if len(found) > 1:
        message = (
            f"name the column of vectors to search (column=...): the table has {', '.join(found)}"
        )
        raise ArgumentError(message)
    return found[0] if found else None


# --- texts ------------------------------------------------------------------------------------------


def _texts(snapshot: Snapshot, request: SearchRequest) -> list[str] | None:
    """Return the columns whose texts are searched; None if there is none, or none is wanted."""
    if request.mode == "vector":
        return None
    if not request.is_text:
        if request.mode != "auto":
            message = f"mode {request.mode!r} searches texts, and the query is {type(request.query).__name__}; pass a text"
            raise ArgumentError(message)
        return None
    if request.text_columns is not None:
        return list(request.text_columns)
    found = text_paths(snapshot)
    if not found and request.mode in ("text", "hybrid"):
        message = (
            "no column has a full-text index: create_scalar_index('…', 'INVERTED') makes one; text_columns=[…] searches "
            "without"
        )
        raise ArgumentError(message)
    return found or None


def _nothing_to_search(snapshot: Snapshot, request: SearchRequest) -> str:
    columns = ", ".join(each.column for each in embedded_columns(snapshot.manifest.schema))
    if not request.is_value:
        return "the table has no column of vectors to search"
    if not request.is_text:
        return f"no column of vectors remembers a model of bytes; those of texts: {columns or '(none)'}"
    return (
        "the table has nothing that a text can be looked for in: embed('…', model) adds vectors, "
        "create_scalar_index('…', 'INVERTED') a full-text index"
    )
