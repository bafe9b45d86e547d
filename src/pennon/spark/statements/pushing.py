"""The conditions, orders and limits of a query that the scan of a table may apply itself.

A condition goes to the scan of a table only if each row that the scan leaves out would be left out by Spark, too:

- it is one of the AND parts of the WHERE of the SELECT that has the table in its FROM, or of the ON of an inner or semi join;
- all of its columns are certain to be the table's;
- no outer join makes NULLs of the table's rows.  Of the ON of a LEFT, SEMI or ANTI JOIN, parts that name the right table
  alone do;
- our scan gives exactly Spark's answer for it (`pennon.spark.source.translation`).

Spark still applies all conditions itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import types as st
from sqlglot import exp

from pennon.expr.tree import Call
from pennon.scan.plan.query import every_column
from pennon.spark.names import find_name
from pennon.spark.source.scan_task import arrow_schema_of, pushed_predicate
from pennon.spark.source.translation import Translation
from pennon.spark.statements.constants import folded
from pennon.spark.statements.references import ParsedQuery, Reference
from pennon.spark.statements.row_limits import limit_of, top_of
from pennon.spark.types import INTEGERS, arrow_schema, spark_schema

if TYPE_CHECKING:
    from pennon.expr.tree import Expression
    from pennon.scan.predicate import Predicate
    from pennon.scan.snapshot import Snapshot
    from pennon.spark.frames.top_rows import TopRows

_FLIPPED: Final[Mapping[type[exp.Expr], type[exp.Binary]]] = {
    exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ,
    exp.NullSafeEQ: exp.NullSafeEQ,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pushed:
    """The condition and the number of rows that the scan of a table applies.

    ``texts`` are the conditions as the query has them; ``top``: the first rows in an order are enough; ``is_whole``: all
    conditions of the table's SELECT are among them.
    """

    predicate: Predicate | None = None
    texts: tuple[str, ...] = ()
    limit: int | None = None
    top: TopRows | None = None
    is_whole: bool = False
    conditions: tuple[Expression, ...] = ()
    """The parts of the predicate, on columns in Spark's types."""
    scope: Scope | None = None
    """The table in its SELECT, None if nothing is certain about it."""


NOTHING: Final = Pushed()


def pushed_for(
    query: ParsedQuery,
    reference: Reference,
    snapshot: Snapshot,
    schema: st.StructType,
    *,
    case_sensitive: bool,
    moment_of: Callable[[str], datetime | None],
) -> Pushed:
    """Return what the scan of a table may apply of a query.

    ``moment_of`` returns the time that a text is in the session's zone, None if it is not certain.
    """
    try:
        return _pushed(
            query,
            reference,
            snapshot,
            schema,
            case_sensitive=case_sensitive,
            moment_of=moment_of,
        )
    except RecursionError:  # thousands of conditions
        return NOTHING


def _pushed(
    query: ParsedQuery,
    reference: Reference,
    snapshot: Snapshot,
    schema: st.StructType,
    *,
    case_sensitive: bool,
    moment_of: Callable[[str], datetime | None],
) -> Pushed:
    node = reference.node
    if node is None or query.tree is None:
        return NOTHING
    select = node.find_ancestor(exp.Select, exp.SetOperation)
    if not isinstance(select, exp.Select) or not _is_plain(node):
        return NOTHING
    scope = Scope.of(
        query, reference, select, schema, case_sensitive=case_sensitive, moment_of=moment_of
    )
    if scope is None:
        return NOTHING
    where = select.args.get("where")
    parts = [] if where is None else list(conjuncts(where.this))
    in_where = [(part, scope.translated(part)) for part in parts] if scope.keeps_rows else []
    on_parts = [(part, scope.translated(part)) for part in scope.on]
    judged = [*in_where, *on_parts]
    known = [(part.sql(dialect="spark"), found) for part, found in judged if found is not None]
    for part in (part for part, found in judged if found is None):
        weaker = scope.implied(part)
        if weaker is not None:
            known.append((f"what follows from {part.sql(dialect='spark')}", weaker))
    texts = tuple(text for text, _ in known)
    is_whole = scope.is_alone and all(found is not None for _, found in in_where)
    rows = limit_of(select) if is_whole else None
    top = None if rows is None else top_of(select, scope.column, schema, rows)
    limit = None if select.args.get("order") else rows
    conditions = tuple(found for _, found in known)
    predicate = scan_predicate(snapshot, conditions, schema=schema) if conditions else None
    return Pushed(predicate, texts, limit, top, is_whole, conditions, scope)


def scan_predicate(
    snapshot: Snapshot,
    conditions: Sequence[Expression],
    text: str | None = None,
    schema: st.StructType | None = None,
) -> Predicate:
    """Return the predicate of a table's scan that all of some conditions hold; their columns have Spark's types.

    ``schema``: the table's in Spark, where it is at hand.
    """
    shown = arrow_schema(schema or spark_schema(arrow_schema_of(snapshot)))
    stored = every_column(snapshot, snapshot.manifest.schema)
    return pushed_predicate(conditions, shown, stored, text)


def _is_plain(node: exp.Table) -> bool:
    """Return whether all rows of a table come in: no sample, no pivot, no new names of its columns."""
    alias = node.args.get("alias")
    renamed = alias is not None and bool(alias.args.get("columns"))
    extra = ("sample", "pivots", "joins", "laterals", "version", "hints", "changes", "when")
    return not renamed and not any(node.args.get(key) for key in extra)


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the AND parts of a condition."""
    if isinstance(tree, exp.Paren):
        yield from conjuncts(tree.this)
    elif isinstance(tree, exp.And):
        yield from conjuncts(tree.this)
        yield from conjuncts(tree.expression)
    else:
        yield tree


@dataclass(frozen=True, slots=True)
class Scope:
    """A table in the FROM of a SELECT.

    ``keeps_rows``: WHERE may be applied to the table before the joins.  ``on``: parts of the ON of joins that may be
    applied to it.  ``at``: its number in FROM.  ``is_seen``: WHERE may name its columns.  ``is_alone``: it is the only
    source of rows.
    """

    select: exp.Select
    at: int
    schema: st.StructType
    qualifier: str
    excluded: frozenset[str]
    case_sensitive: bool
    moment_of: Callable[[str], datetime | None]
    keeps_rows: bool
    is_seen: bool
    on: tuple[exp.Expr, ...]
    is_alone: bool
    has_escapes: bool

    @classmethod
    def of(
        cls,
        query: ParsedQuery,
        reference: Reference,
        select: exp.Select,
        schema: st.StructType,
        *,
        case_sensitive: bool,
        moment_of: Callable[[str], datetime | None],
    ) -> Scope | None:
        """Look at the joins of a SELECT; None if nothing is certain about the table."""
        source = select.args.get("from_")
        joins: Sequence[exp.Join] = select.args.get("joins") or ()
        if source is None or any(join.args.get("method") for join in joins):
            return None
        sources = [source.this, *(join.this for join in joins)]
        at = next((n for n, each in enumerate(sources) if each is reference.node), None)
        if at is None:
            return None
        (qualifier,) = reference.qualifiers
        aliases = [each.alias_or_name.lower() for each in sources]
        aliases += [each.alias_or_name.lower() for each in select.args.get("laterals") or ()]
        if aliases.count(qualifier) != 1:
            return None
        using = {each.name.lower() for join in joins for each in join.args.get("using") or ()}
        is_seen = not at or _kind(joins[at - 1]) not in ("SEMI", "ANTI")
        keeps = is_seen and not _is_nullable(at, joins)
        laterals = select.args.get("laterals")
        return cls(
            select=select,
            at=at,
            schema=schema,
            qualifier=qualifier,
            excluded=frozenset(using),
            case_sensitive=case_sensitive,
            moment_of=moment_of,
            keeps_rows=keeps,
            is_seen=is_seen,
            on=tuple(_on_parts(at, joins, keeps_rows=keeps)),
            is_alone=not joins and not laterals,
            has_escapes=_has_escapes(query),
        )

    def translated(self, part: exp.Expr) -> Expression | None:
        """Return a condition as one of our scan; None if it is not the table's alone, or not exactly Spark's."""
        if part.find(exp.Query, exp.Subquery) is not None:
            return None
        if self.has_escapes and any(each.is_string for each in part.find_all(exp.Literal)):
            return None
        own = part.copy()
        for column in list(own.find_all(exp.Column)):
            name = self.column(column)
            if name is None:
                return None
            plain = exp.column(exp.to_identifier(name, quoted=True))
            if column is own:
                own = plain
            else:
                column.replace(plain)
        if own.find(exp.Column) is None:
            return None
        return Translation(self.schema, None).of(self._plainer(own))

    def implied(self, part: exp.Expr) -> Expression | None:
        """Return a weaker condition of our scan that holds wherever an OR of conditions does; None if there is none.

        Each alternative needs a part that is the table's alone: ``t.a = 1 AND u.b = 2 OR t.a = 3`` implies that t.a is 1 or 3.
        """
        while isinstance(part, exp.Paren):
            part = part.this
        if not isinstance(part, exp.Or):
            return None
        found: list[Expression] = []
        for alternative in part.flatten():
            parts = [self.translated(each) for each in conjuncts(alternative)]
            known = [each for each in parts if each is not None]
            if not known:
                inner = self.implied(alternative)
                known = [] if inner is None else [inner]
            if not known:
                return None
            found.append(reduce(_and, known))
        return reduce(_or, found)

    def column(self, column: exp.Column) -> str | None:
        """Return the column of the table that a name may mean; None if it is none, or not certain."""
        if column.args.get("db") or not isinstance(column.this, exp.Identifier):
            return None
        if column.table and column.table.lower() != self.qualifier:
            return None
        if column.name.lower() in self.excluded:
            return None
        same = [each for each in self.schema.names if each.lower() == column.name.lower()]
        if len(same) != 1:
            return None
        return find_name(column.name, same, case_sensitive=self.case_sensitive)

    def _plainer(self, node: exp.Expr) -> exp.Expr:
        """Put columns before literals, and take apart literals that sqlglot shows as casts."""
        for given in list(node.iter_expressions()):
            constant = folded(given)
            child = given if constant is None else given.replace(constant)
            plain = self._plainer(child)
            if plain is not child:
                child.replace(plain)
        kind = _FLIPPED.get(type(node))
        if (
            kind is not None
            and isinstance(node.expression, exp.Column)
            and not isinstance(node.this, exp.Column)
        ):
            return kind(this=node.expression, expression=node.this)
        if isinstance(node, exp.Paren) and isinstance(node.this, (exp.Literal, exp.Neg)):
            return node.this
        if (
            isinstance(node, exp.Literal)
            and node.is_string
            and not isinstance(node.parent, exp.Cast)
        ):
            return self._moment(node.name, self._compared(node)) or node
        return self._literal(node) if isinstance(node, exp.Cast) else node

    def _compared(self, literal: exp.Expr) -> st.DataType | None:
        """Return the type of the column that a literal is compared with."""
        above = literal.parent
        while above is not None:
            column = above.find(exp.Column)
            if column is not None:
                return (
                    self.schema[column.name].dataType if column.name in self.schema.names else None
                )
            above = above.parent
        return None

    def _moment(self, text: str, kind: st.DataType | None) -> exp.Expr | None:
        """Return a time in UTC, as `Translation` takes it; None if a text is none, or is two times in its zone."""
        found = self.moment_of(text) if type(kind) is st.TimestampType else None
        return (
            None
            if found is None
            else exp.cast(exp.Literal.string(found.isoformat()), "timestamptz")
        )

    def _literal(self, cast: exp.Cast) -> exp.Expr:
        inner = cast.this
        if isinstance(inner, exp.HexString) and cast.is_type("text"):
            try:
                return exp.Literal.string(bytes.fromhex(inner.name).decode())
            except ValueError:
                return cast
        if not isinstance(inner, exp.Literal):
            return cast
        kind = self._compared(cast)
        if inner.is_string:
            if cast.is_type("timestamp", "timestamptz", "timestampltz"):
                return self._moment(inner.name, kind) or cast
            is_date = cast.is_type("date") and isinstance(kind, st.DateType)
            return inner if is_date else cast
        is_long = cast.is_type("bigint") and inner.name.isdecimal() and isinstance(kind, INTEGERS)
        is_double = cast.is_type("double") and isinstance(kind, st.DoubleType)
        is_decimal = cast.is_type("decimal") and isinstance(kind, st.DecimalType)
        return inner if is_long or is_double or is_decimal else cast


def _and(left: Expression, right: Expression) -> Expression:
    return Call("AND", (left, right), left.type)


def _or(left: Expression, right: Expression) -> Expression:
    return Call("OR", (left, right), left.type)


def _has_escapes(query: ParsedQuery) -> bool:
    """Return whether a text of the query may mean something else by the session's settings."""
    text = query.statement.text
    return any(
        word.is_text and ("\\" in text[word.start : word.end] or text[word.start] != "'")
        for word in query.statement.words
    )


def _kind(join: exp.Join) -> str:
    return (join.args.get("kind") or "").upper()


def _side(join: exp.Join) -> str:
    return (join.args.get("side") or "").upper()


def _is_nullable(at: int, joins: Sequence[exp.Join]) -> bool:
    """Return whether an outer join makes NULLs of the rows of a source."""
    for number, join in enumerate(joins, start=1):
        if _kind(join) in ("SEMI", "ANTI"):
            continue
        side = _side(join)
        if side == "FULL" and at <= number:
            return True
        if (side == "LEFT" and at == number) or (side == "RIGHT" and at < number):
            return True
    return False


def _on_parts(at: int, joins: Sequence[exp.Join], *, keeps_rows: bool) -> Iterator[exp.Expr]:
    """Yield the parts of ON that may be applied to a source before the joins."""
    for number, join in enumerate(joins, start=1):
        on = join.args.get("on")
        if on is None:
            continue
        side, kind = _side(join), _kind(join)
        is_left = side == "LEFT" and kind in ("", "OUTER")
        is_semi = side in ("", "LEFT") and kind in ("SEMI", "ANTI")
        drops = (not side and kind in ("", "INNER", "CROSS")) or (is_semi and kind == "SEMI")
        if (drops and keeps_rows and at <= number) or (number == at and (is_left or is_semi)):
            yield from conjuncts(on)
