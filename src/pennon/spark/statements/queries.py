"""Queries: each Lance table becomes a view of the columns and rows that the query uses; the rest is Spark's.

The text that Spark gets is the user's, with the names of views in the places of the tables' names.  The views are
DataFrames that `pyspark.sql.SparkSession.sql` takes beside the text, so it makes and drops them, on Connect, too.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from pennon.core.cached_property import cached_property
from pennon.errors import ArgumentError
from pennon.spark.frames.aggregate import aggregate_frame
from pennon.spark.moments import parse_in_session
from pennon.spark.names import quoted
from pennon.spark.session import is_case_sensitive
from pennon.spark.source.options import ReadOptions
from pennon.spark.source.scan_task import arrow_schema_of
from pennon.spark.statements.grouping import Grouping, find_grouping
from pennon.spark.statements.join_keys import limited_by_keys
from pennon.spark.statements.matches import TextMatch, find_matches
from pennon.spark.statements.only_aggregates import (
    KnownColumns,
    OnlyAggregates,
    is_only_aggregates,
)
from pennon.spark.statements.pruning import (
    UsedColumns,
    qualifier_splices,
    used_columns,
)
from pennon.spark.statements.pushing import NOTHING, pushed_for
from pennon.spark.statements.references import ParsedQuery, Reference, parse_query
from pennon.spark.statements.searches import FoundSearch, find_searches
from pennon.spark.statements.table_view import Note, TableView
from pennon.spark.statements.tables import VersionChoice, open_place
from pennon.spark.statements.words import Splice, Statement, spliced
from pennon.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as st

    from pennon.scan.snapshot import Snapshot

PUSH_DOWN: Final = "spark.pennon.sql.pushDown"
"""The session's setting: false lets `pennon.spark.sql` read tables whole, to compare."""
_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?"
)


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query as Spark gets it: the text, in which views have the names of ``frames``."""

    text: str
    frames: Mapping[str, DataFrame] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    answer: DataFrame | None = None
    """The whole result, where the scan of a table gives it."""

    def run(self, spark: SparkSession) -> DataFrame:
        """Return what Spark makes of it."""
        if self.answer is not None:
            return self.answer
        if not self.frames:
            return spark.sql(self.text)
        text = self.text.replace("{", "{{").replace("}", "}}")
        for name in self.frames:
            text = text.replace(name, "{" + name + "}")
        views: dict[str, Any] = dict(self.frames)
        return spark.sql(text, **views)


def prepare_query(spark: SparkSession, statement: Statement) -> PreparedQuery:
    """Replace the Lance tables of a query, or of another statement with queries in it, by views."""
    names = _ViewNames()
    searches = find_searches(spark, statement)
    calls = {names.next(): each for each in searches}
    cuts = [Splice(each.start, each.end, name) for name, each in calls.items()]
    plain = Statement.of(spliced(statement.text, cuts)) if cuts else statement
    query = parse_query(spark, plain)
    pushes = str(spark.conf.get(PUSH_DOWN, "true")).lower() != "false" if query.references else True
    matches = find_matches(query)
    reader = _QueryReader(spark, query, matches, _Settings(spark), pushes=pushes)
    views = {names.next(): reference for reference in query.references}
    found = {name: reader.view(reference) for name, reference in views.items()}
    answer = reader.answer() if pushes and not searches else None
    if answer is None:
        found = dict(zip(found, limited_by_keys([*found.values()]), strict=True))
    splices = [each for name, one in views.items() for each in _splices(query, one, name)]
    splices += _star_splices(query, list(found.values()))
    splices += [Splice(each.start, each.end, "TRUE") for each in matches]
    grouped = [splice for each in found.values() for splice in each.grouped_splices]
    splices = [each for each in splices if not any(each.is_within(other) for other in grouped)]
    text = spliced(query.statement.text, dict.fromkeys([*splices, *grouped]))
    notes = [_search_note(each) for each in searches]
    is_aggregated = answer is not None and answer.aggregates
    notes += [each.note(is_answer=is_aggregated) for each in found.values()]
    if answer is not None:
        return PreparedQuery(text, {}, (*notes, answer.note), answer.rows)
    notes.append(Note("statement", "Spark", _shown(text, views)))
    made = {name: each.frame() for name, each in calls.items()}
    made |= {name: each.frame(spark) for name, each in found.items()}
    return PreparedQuery(text, made, tuple(notes))


def run_query(spark: SparkSession, text: str | Statement) -> DataFrame:
    """Return the rows of a query."""
    statement = Statement.of(text) if isinstance(text, str) else text
    return prepare_query(spark, statement).run(spark)


@contextmanager
def with_views(spark: SparkSession, texts: Sequence[str]) -> Iterator[list[str]]:
    """Give conditions and values in which Lance tables stand by the names of views; they are dropped at the end."""
    prepared = [_prepared_expression(spark, text) for text in texts]
    made = {name: frame for each in prepared for name, frame in each.frames.items()}
    for name, frame in made.items():
        frame.createOrReplaceTempView(name)
    try:
        yield [each.text for each in prepared]
    finally:
        for name in made:
            spark.catalog.dropTempView(name)


def _prepared_expression(spark: SparkSession, text: str) -> PreparedQuery:
    statement = Statement.of(text)
    if not any(word.upper in ("SELECT", "FROM", "TABLE") for word in statement.words):
        return PreparedQuery(text)
    return prepare_query(spark, statement)


class _ViewNames:
    """Names of views, with a secret in them, so that a statement cannot have them by chance."""

    def __init__(self) -> None:
        self._secret = secrets.token_hex(8)
        self._count = 0

    def next(self) -> str:
        """Return another name; all have the same length."""
        self._count += 1
        return f"__pennon_{self._secret}_{self._count:04d}"


# --- what is read of each table -------------------------------------------------------------------


class _Settings:
    """Settings of a session; each is asked for once a query, for it takes a call of the JVM."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @cached_property
    def case_sensitive(self) -> bool:
        """Return whether names that differ in case alone are two names."""
        return is_case_sensitive(self._spark)

    @cached_property
    def is_ansi(self) -> bool:
        """Return whether a sum that its type does not hold is an error."""
        return str(self._spark.conf.get("spark.sql.ansi.enabled")).lower() == "true"


@dataclass(frozen=True, slots=True)
class _QueryReader:
    """Opens each table of a query once, and decides what is read of it."""

    spark: SparkSession
    query: ParsedQuery
    matches: Sequence[TextMatch]
    settings: _Settings
    pushes: bool = field(kw_only=True)
    opened: dict[tuple[str, str | None, VersionChoice], Snapshot] = field(default_factory=dict)
    views: dict[int, TableView] = field(default_factory=dict)
    """By the place of the table's name among the words."""

    def snapshot(self, reference: Reference) -> Snapshot:
        """Return the version of a table that the whole statement sees."""
        place = reference.place
        key = (place.entry.location, place.ref, reference.choice)
        if key not in self.opened:
            self.opened[key] = open_place(place, reference.choice)
        return self.opened[key]

    def view(self, reference: Reference) -> TableView:
        """Return what is read of a table."""
        known = self.views.get(reference.name.first)
        if known is None:
            known = self.views[reference.name.first] = self._view(reference)
        return known

    def _view(self, reference: Reference) -> TableView:
        snapshot = self.snapshot(reference)
        schema = spark_schema(arrow_schema_of(snapshot))
        used = used_columns(self.query, reference, schema)
        match = next((each for each in self.matches if each.reference is reference), None)
        if not self.pushes or match is not None:
            used = (
                used if self.pushes else UsedColumns(tuple(schema.names), used.system, is_all=True)
            )
            return TableView(reference, snapshot, used, NOTHING, match)
        pushed = pushed_for(
            self.query,
            reference,
            snapshot,
            schema,
            case_sensitive=self.settings.case_sensitive,
            moment_of=self._moment_of,
        )
        grouping = self._grouping(reference, schema) if pushed.is_whole else None
        return TableView(reference, snapshot, used, pushed, grouping=grouping)

    def _grouping(self, reference: Reference, schema: st.StructType) -> Grouping | None:
        """Return how rows of a table are aggregated where they are read; None if they come out."""
        known = KnownColumns(reference, tuple(schema.names), self.settings.case_sensitive)
        return find_grouping(
            self.query, reference, schema, known.find, lambda: self.settings.is_ansi
        )

    def _moment_of(self, text: str) -> datetime | None:
        """Return the time that a text is in the session's zone; None if it is none, or two at a change of clocks."""
        if _MOMENT.fullmatch(text) is None:
            return None
        try:
            found = parse_in_session(self.spark, text)
        except ArgumentError:
            return None
        is_one = found.utcoffset() == found.replace(fold=1).utcoffset()
        return found.astimezone(UTC) if is_one else None

    def answer(self) -> _Answer | None:
        """Return the result of a query of one table that its scan gives; None if Spark has work left."""
        tree = self.query.tree
        if len(self.query.references) != 1 or not isinstance(tree, exp.Select):
            return None
        if self.query.statement.words[0].upper != "SELECT":  # it stands in another statement
            return None
        (reference,) = self.query.references
        source = tree.args.get("from_")
        if source is None or source.this is not reference.node:
            return None
        rows = self._only_columns(tree, reference)
        if rows is not None:
            return _Answer(rows, aggregates=False)
        rows = self._aggregated(tree, reference) if is_only_aggregates(tree) else None
        return None if rows is None else _Answer(rows, aggregates=True)

    def _only_columns(self, tree: exp.Select, reference: Reference) -> DataFrame | None:
        """Return the result of ``SELECT some, columns FROM t WHERE …``: what the scan returns, without a view."""
        if any(tree.args[key] for key in tree.args if key not in ("expressions", "from_", "where")):
            return None
        view = self.view(reference)
        used = view.used
        if not view.pushed.is_whole or used.system or used.is_all or view.match is not None:
            return None
        known = KnownColumns(reference, used.columns, self.settings.case_sensitive)
        found = [known.find(each) for each in tree.expressions]
        if None in found:
            return None
        rows = view.frame(self.spark)
        typed = tuple(each.name for each in tree.expressions)
        return rows if typed == used.columns else rows.select(*map(quoted, typed))

    def _aggregated(self, tree: exp.Select, reference: Reference) -> DataFrame | None:
        """Return the result of a query that only aggregates one table; None if it does more."""
        view = self.view(reference)
        names = tuple(arrow_schema_of(view.snapshot).names)
        known = KnownColumns(reference, names, self.settings.case_sensitive)
        plan = OnlyAggregates.of(tree, known)
        if plan is None or not view.pushed.is_whole or view.used.system:
            return None
        options = ReadOptions(uri=view.snapshot.store.uri)
        rows = aggregate_frame(
            self.spark, view.snapshot, options, view.pushed.predicate, plan.measures, plan.keys
        )
        return plan.of_rows(rows)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The whole result of a query, as the scan of a table gives it."""

    rows: DataFrame
    aggregates: bool

    @property
    def note(self) -> Note:
        """Return the line of ``explain=True``."""
        if self.aggregates:
            return Note("aggregates", "scan", "the tasks that read the table aggregate")
        return Note("statement", "scan", "the rows are the result")


# --- the text --------------------------------------------------------------------------------------


def _splices(query: ParsedQuery, reference: Reference, view: str) -> Iterator[Splice]:
    words = query.statement.words
    name = reference.name
    first, last = words[name.first], words[name.after - 1]
    alias = f" AS {quoted(name.parts[-1])}" if reference.needs_alias else ""
    if reference.after == last.end:
        yield Splice(first.start, last.end, view + alias)
    else:  # a sample stands between the name and the alias
        yield Splice(first.start, last.end, view)
        if alias:
            yield Splice(reference.after, reference.after, alias)
    yield from qualifier_splices(query.statement, reference)


def _star_splices(query: ParsedQuery, views: Sequence[TableView]) -> Iterator[Splice]:
    """Yield what leaves columns of rows, which are named beside ``*``, out of the ``*``."""
    hidden = [
        f"{quoted(view.reference.alias or view.reference.name.parts[-1])}.{name}"
        for view in views
        for name in view.used.system
    ]
    tree = query.tree
    if not hidden or not isinstance(tree, exp.Select) or len(list(tree.find_all(exp.Select))) != 1:
        return
    words = query.statement.words
    for number, word in enumerate(words):
        if word.upper != "*" or (number + 1 < len(words) and words[number + 1].upper == "EXCEPT"):
            continue
        before = words[number - 1].upper if number else ""
        if before in ("SELECT", ",", "DISTINCT", "ALL"):
            yield Splice(word.end, word.end, f" EXCEPT ({', '.join(hidden)})")


def _shown(text: str, views: Mapping[str, Reference]) -> str:
    """Return a text with the tables' names in the places of the views'."""
    for name, reference in views.items():
        text = text.replace(name, f"<{reference.place.title}>")
    return " ".join(text.split())


def _search_note(search: FoundSearch) -> Note:
    return Note(f"function {search.name}", "search", search.detail)
