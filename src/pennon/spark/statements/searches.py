"""Table functions over Lance tables by name: searches of vectors and texts, changes, and listings.

``lance_vector_search('lake.items', array(0.1, 0.2), 5)`` and the like, with lance-spark's names and arguments:
``VECTOR_SEARCH`` and ``HYBRID_SEARCH`` are the same functions.  ``SEARCH`` is one of texts, too, and of vectors where the
table has a column of embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import sqlglot
from sqlglot import exp

from pennon.errors import ArgumentError
from pennon.ops.embed.search import SearchRequest, plan_search
from pennon.scan.plan.query import ScanOptions, parse_predicate
from pennon.scan.plan.row_search import TextSearch
from pennon.scan.plan.vector_query import VectorSearch, vector_search
from pennon.scan.search.fusion import CONSTANT, Fusion
from pennon.spark.frames.changes import change_frame
from pennon.spark.frames.found import found_frame
from pennon.spark.frames.search import only_vectors
from pennon.spark.history import history_frame
from pennon.spark.source import listings
from pennon.spark.statements.session import Place, catalogs_of, find_place, is_path
from pennon.spark.statements.tables import VersionChoice, open_place
from pennon.spark.statements.words import Cursor, Name, Statement, chains
from pennon.spark.table.functions import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.plan.row_search import RowSearch
    from pennon.scan.snapshot import Snapshot

Search = TypeVar("Search", VectorSearch, TextSearch)
_DEFAULT_ROWS: Final = 10
_ALIASES: Final = {
    "search_query": "query",
    "limit": "num_results",
    "k": "num_results",
    "num_candidates": "candidates",
    "candidate_count": "candidates",
    "metric": "distance_type",
}
_COMMON: Final = (
    "num_results",
    "columns",
    "filter",
    "offset",
    "version",
    "with_row_id",
    "fast_search",
)
_VECTOR: Final = (
    "query_vector", "vector_column", "distance_type", "nprobes", "ef", "refine_factor", "lower_bound", "upper_bound",
    "bypass_vector_index", "prefilter",
)  # fmt: skip
_TEXT: Final = ("query", "search_columns")


@dataclass(frozen=True, slots=True)
class TableCall:
    """A table function that is called: its table, and its arguments by name."""

    spark: SparkSession
    place: Place
    given: Mapping[str, Any]

    @property
    def snapshot(self) -> Snapshot:
        """Return the version that it is about."""
        return open_place(self.place, VersionChoice(self.given.get("version")))

    def needs(self, name: str) -> Any:
        """Return an argument.  Raises ArgumentError if it is not there."""
        if self.given.get(name) is None:
            message = f"the argument {name} is missing"
            raise ArgumentError(message)
        return self.given[name]


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A table function: the names of its arguments in order, those that a position may give first."""

    run: Callable[[TableCall], DataFrame]
    positions: tuple[str, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundSearch:
    """A call of a table function in a statement: where it stands, and its rows."""

    start: int
    end: int
    name: str
    function: TableFunction
    call: TableCall = field(repr=False)

    @property
    def detail(self) -> str:
        """Return the table and the arguments, for ``explain=True``."""
        given = {key: value for key, value in self.call.given.items() if key != "query_vector"}
        return "; ".join(
            [self.call.place.title, *(f"{key} {value}" for key, value in given.items())]
        )

    def frame(self) -> DataFrame:
        """Return its rows."""
        return self.function.run(self.call)


def find_searches(spark: SparkSession, statement: Statement) -> list[FoundSearch]:
    """Return the calls of table functions whose tables are Lance tables."""
    found: list[FoundSearch] = []
    for name in chains(statement):
        function = FUNCTIONS.get(name.parts[-1].lower()) if len(name.parts) == 1 else None
        if function is None or not _is_table_function(statement, name):
            continue
        cursor = Cursor(statement, name.after)
        cursor.group()
        start, end = statement.words[name.first].start, statement.words[cursor.at - 1].end
        call = _call(spark, function, name, statement.text[start:end])
        if call is not None:
            found.append(FoundSearch(start, end, name.parts[-1].lower(), function, call))
    return found


def _is_table_function(statement: Statement, name: Name) -> bool:
    words = statement.words
    before = words[name.first - 1].upper if name.first else ""
    follows = words[name.after].upper if name.after < len(words) else ""
    return follows == "(" and before in ("FROM", "JOIN", "LATERAL", ",", "(", "USING")


def _call(spark: SparkSession, function: TableFunction, name: Name, text: str) -> TableCall | None:
    """Return a call with its arguments; None if its table is none of Lance."""
    given = _arguments(function, name.parts[0], text)
    table = given.pop("table", None)
    if not isinstance(table, str):
        message = f"{name.parts[0]}: the first argument is the name of a table, as a text"
        raise ArgumentError(message)
    place = _place(spark, table)
    if place is None and not catalogs_of(spark).attached:
        return None
    if place is None:
        message = f"{name.parts[0]}: no catalog of this session has the table {table!r}"
        raise ArgumentError(message)
    return TableCall(spark, place, given)


def _place(spark: SparkSession, table: str) -> Place | None:
    if "/" in table or "://" in table:
        found = Name(("lance", table.removeprefix("lance.").strip("`")), 0, 0)
        return find_place(spark, found) if is_path(found.parts) else None
    cursor = Cursor(Statement.of(table))
    name = cursor.name()
    cursor.ends()
    return find_place(spark, name)


def _arguments(function: TableFunction, name: str, text: str) -> dict[str, Any]:
    try:
        tree = sqlglot.parse_one(f"f{text[len(name) :]}", dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        message = f"{name}: the arguments cannot be read: {error}"
        raise ArgumentError(message) from None
    positions = iter(("table", *function.positions))
    given: dict[str, Any] = {}
    for each in tree.expressions:
        if isinstance(each, (exp.Kwarg, exp.PropertyEQ)):
            key = each.this.name.lower()
            value = literal_value(each.expression, name)
        else:
            key = next(positions, "")
            value = literal_value(each, name)
        key = _ALIASES.get(key, key)
        if key not in ("table", *function.positions, *function.names):
            known = ", ".join(("table", *function.positions, *function.names))
            message = (
                f"{name} has no argument {key!r}; it has {known}"
                if key
                else f"{name} has more arguments than it takes"
            )
            raise ArgumentError(message)
        given[key] = value
    return given


def literal_value(tree: exp.Expr, name: str) -> Any:
    """Return a literal as Python's value."""
    if isinstance(tree, exp.Literal):
        if tree.is_string:
            return tree.name
        return int(tree.name) if tree.name.isdecimal() else float(tree.name)
    if isinstance(tree, (exp.Paren, exp.Cast)):
        inner = tree.this
        if isinstance(inner, exp.HexString):
            return bytes.fromhex(inner.name).decode()
        return literal_value(inner, name)
    if isinstance(tree, exp.Neg):
        return -literal_value(tree.this, name)
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    if isinstance(tree, exp.Null):
        return None
    if isinstance(tree, exp.Array):
        return [literal_value(each, name) for each in tree.expressions]
    if isinstance(tree, exp.Column):
        return ".".join(part.name for part in tree.parts)
    message = f"{name}: an argument is a literal, not {tree.sql(dialect='spark')}"
    raise ArgumentError(message)


# --- searches --------------------------------------------------------------------------------------


def _vectors(call: TableCall) -> DataFrame:
    snapshot = call.snapshot
    return _searched(call, snapshot, _vector_search(call, snapshot))


def _texts(call: TableCall) -> DataFrame:
    return _searched(call, call.snapshot, _text_search(call))


def _hybrid(call: TableCall) -> DataFrame:
    snapshot = call.snapshot
    rows = call.given.get("num_results", _DEFAULT_ROWS) + call.given.get("offset", 0)
    candidates = max(call.given.get("candidates", rows), rows)
    fusion = Fusion.of(rows, candidates, call.given.get("rrf_k", 60.0))
    search = fusion.search(_vector_search(call, snapshot), _text_search(call))
    return _searched(call, snapshot, search)


def _any(call: TableCall) -> DataFrame:
    """Search texts, vectors or both: what `LanceTable.search` does."""
    given, snapshot = call.given, call.snapshot
    columns = given.get("columns")
    names = None if columns in (None, ["*"]) else [name for name in columns if name != "_rowid"]
    request = SearchRequest(
        query=call.needs("query"),
        k=given.get("num_results", _DEFAULT_ROWS),
        mode=given.get("mode", "auto"),
        column=given.get("vector_column"),
        text_columns=given.get("search_columns"),
        columns=names,
        filter=given.get("filter"),
        prefilter=bool(given.get("prefilter", True)),
        offset=given.get("offset", 0),
        candidates=given.get("candidates"),
        constant=given.get("rrf_k", CONSTANT),
        with_row_id=bool(given.get("with_row_id")) or (columns is not None and "_rowid" in columns),
        fast_search=bool(given.get("fast_search", False)),
        nprobes=given.get("nprobes"),
        refine_factor=given.get("refine_factor"),
        ef=given.get("ef"),
    )
    plan = plan_search(snapshot, request)
    return found_frame(call.spark, snapshot, replace(plan.options, blobs_as_bytes=True))


def _vector_search(call: TableCall, snapshot: Snapshot) -> VectorSearch:
    given = call.given
    column = given.get("vector_column") or only_vectors(snapshot)
    bounds = given.get("lower_bound"), given.get("upper_bound")
    rows = given.get("num_results", _DEFAULT_ROWS) + given.get("offset", 0)
    found = vector_search(
        snapshot,
        column,
        call.needs("query_vector"),
        rows,
        metric=given.get("distance_type"),
        nprobes=given.get("nprobes"),
        refine_factor=given.get("refine_factor"),
        use_index=not given.get("bypass_vector_index", False),
        ef=given.get("ef"),
        distance_range=None if bounds == (None, None) else bounds,
    )
    return _with_options(found, call)


def _text_search(call: TableCall) -> TextSearch:
    columns = call.given.get("search_columns")
    chosen = None if columns is None else tuple(columns)
    return _with_options(TextSearch(call.needs("query"), chosen), call)


def _with_options(search: Search, call: TableCall) -> Search:
    # A filter limits what is searched, unless prefilter is false: so there are as many rows as were asked for.
    prefilter = bool(call.given.get("prefilter", True))
    return replace(search, prefilter=prefilter, is_fast=bool(call.given.get("fast_search", False)))


def _searched(call: TableCall, snapshot: Snapshot, search: RowSearch) -> DataFrame:
    given = call.given
    text = given.get("filter")
    columns = given.get("columns")
    names = None if columns in (None, ["*"]) else [name for name in columns if name != "_rowid"]
    limit = given.get("num_results", _DEFAULT_ROWS)
    options = ScanOptions(
        columns=None if names is None else tuple(names),
        predicate=None if text is None else parse_predicate(snapshot, text, search=search),
        limit=None if getattr(search, "is_batch", False) else limit,
        offset=given.get("offset", 0),
        with_row_id=bool(given.get("with_row_id")) or (columns is not None and "_rowid" in columns),
        blobs_as_bytes=True,
        search=search,
    )
    return found_frame(call.spark, snapshot, options)


# --- changes and listings ---------------------------------------------------------------------------


def _changes(call: TableCall) -> DataFrame:
    snapshot = open_place(call.place)
    end = call.given.get("end")
    last = int(snapshot.manifest.version) if end is None else int(end)
    columns = call.given.get("columns")
    net = bool(call.given.get("net", False))
    return change_frame(call.spark, snapshot, (int(call.needs("begin")), last), columns, net=net)


def _at(call: TableCall) -> DataFrame:
    version = call.given.get("version")
    choice = VersionChoice(version) if not isinstance(version, str) else VersionChoice(ref=version)
    snapshot = open_place(call.place, choice)
    options = call.place.entry.storage_options
    return read(
        call.spark, snapshot.store.uri, version=snapshot.manifest.version, storage_options=options
    )


def _listing(rows: Callable[[Snapshot], Iterator[tuple[Any, ...]]], schema: str) -> TableFunction:
    def run(call: TableCall) -> DataFrame:
        return call.spark.createDataFrame(list(rows(call.snapshot)), schema)

    return TableFunction(run, ("version",))


def _history(call: TableCall) -> DataFrame:
    return history_frame(call.spark, open_place(call.place), None)


_VECTORS: Final = TableFunction(_vectors, ("query_vector", "num_results"), (*_VECTOR, *_COMMON))
_TEXTS: Final = TableFunction(_texts, ("query", "num_results"), (*_TEXT, *_COMMON, "prefilter"))
_ANY: Final = TableFunction(
    _any,
    ("query", "num_results"),
    (
        *_TEXT, *_COMMON, "mode", "vector_column", "prefilter", "candidates", "rrf_k", "nprobes", "ef", "refine_factor",
    ),
)  # fmt: skip
_HYBRID: Final = TableFunction(
    _hybrid,
    ("query_vector", "query", "num_results"),
    (*_VECTOR, *_TEXT, *_COMMON, "candidates", "rrf_k"),
)
FUNCTIONS: Final[Mapping[str, TableFunction]] = {
    "lance_vector_search": _VECTORS,
    "vector_search": _VECTORS,
    "lance_text_search": _TEXTS,
    "lance_search": _ANY,
    "search": _ANY,
    "lance_hybrid_search": _HYBRID,
    "hybrid_search": _HYBRID,
    "lance_changes": TableFunction(_changes, ("begin", "end"), ("columns", "net")),
    "lance_at": TableFunction(_at, ("version",)),
    "lance_history": TableFunction(_history, ()),
    "lance_versions": _listing(listings.version_rows, listings.VERSION_SCHEMA),
    "lance_fragments": _listing(listings.fragment_rows, listings.FRAGMENT_SCHEMA),
    "lance_files": _listing(listings.file_rows, listings.FILE_SCHEMA),
    "lance_indices": _listing(listings.index_rows, listings.INDEX_SCHEMA),
}
