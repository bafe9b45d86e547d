"""The tables that a query names, wherever they stand: in joins, subqueries, common table expressions, set operations.

sqlglot parses the query, and each table of the tree is looked up.  A query that it cannot parse, or in which a table
stands where the tree has none, is searched word by word: then nothing is certain about scopes, and tables are read
whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import sqlglot
from sqlglot import exp

from pennon.errors import ArgumentError
from pennon.spark.statements.session import (
    Place,
    catalogs_of,
    check_known,
    find_place,
    is_path,
)
from pennon.spark.statements.tables import NEWEST, VersionChoice, read_ref, read_version
from pennon.spark.statements.words import Cursor, Name, Splice, Statement, chains, spliced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNSURE: Final = frozenset(
    {"|>", "PIVOT", "UNPIVOT", "IDENTIFIER", "NATURAL", "TRANSFORM", "MATCH_RECOGNIZE"}
)
"""Words of queries whose use of columns is not looked into."""
_STATEMENTS: Final = frozenset(
    {
        "INSERT",
        "CREATE",
        "REPLACE",
        "EXPLAIN",
        "DESCRIBE",
        "DESC",
        "MERGE",
        "UPDATE",
        "DELETE",
        "CACHE",
    }
)
_QUERIES: Final = frozenset({"SELECT", "WITH", "FROM", "VALUES"})
_BEFORE: Final = frozenset({"FROM", "JOIN", "TABLE", "LATERAL"})
_CLAUSES: Final = frozenset(
    {
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "ON",
        "USING",
        "LIMIT",
        "SORT",
        "WINDOW",
        "QUALIFY",
    }
)
_NO_ALIAS: Final = frozenset(
    {
        "ON", "USING", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "JOIN",
        "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "LATERAL", "UNION", "EXCEPT", "MINUS",
        "INTERSECT", "TABLESAMPLE", "PIVOT", "UNPIVOT", "WINDOW", "QUALIFY", "SELECT", "VALUES", "WHEN", "APPROX",
        "EXACT", "INSERT", "SET",
    }
)  # fmt: skip
"""Words that may follow a table, and are no alias of it."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A Lance table in a query: where its name stands, and what is known of it there.

    ``node`` is its place in the tree; None if the query was searched word by word.  ``alias`` is the one that
    the query gives; None: it is known by its own name.  ``after`` is the place in the text where an alias would
    stand.
    """

    name: Name
    place: Place
    choice: VersionChoice
    alias: str | None
    after: int
    node: exp.Table | None = None
    needs_alias: bool = True

    @property
    def full_name(self) -> tuple[str, ...]:
        """Return the name with its catalog and namespaces, which may stand before columns."""
        attached = self.place.attached
        if attached is None or self.place.ref is not None:
            return self.name.parts
        return (attached.name, *self.place.name[:-1], self.name.parts[-1])

    @property
    def qualifiers(self) -> frozenset[str]:
        """Return the names, in lower case, that stand before the table's columns."""
        return frozenset({(self.name.parts[-1] if self.alias is None else self.alias).lower()})


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query, its tree (None: unsure) and its tables; versions are blanked out of the text."""

    statement: Statement
    tree: exp.Expr | None
    references: tuple[Reference, ...]


def parse_query(spark: SparkSession, statement: Statement) -> ParsedQuery:
    """Find the Lance tables of a query, or of another statement that has queries in it."""
    plain, choices = _without_versions(spark, statement)
    tree = _tree_of(plain)
    found = None if tree is None else _tables_of(spark, plain, tree, choices)
    if found is None:
        tree, found = None, _tables_among(spark, plain, choices)
    missing = set(choices) - {each.name.first for each in found}
    if missing:
        chain = next(each for each in chains(plain) if each.first in missing)
        message = f"{statement.title!r}: {chain} is no Lance table of this session, so it has no version to choose"
        raise ArgumentError(message)
    return ParsedQuery(plain, tree, tuple(found))


# --- versions behind names -------------------------------------------------------------------------


def _without_versions(
    spark: SparkSession, statement: Statement
) -> tuple[Statement, dict[int, VersionChoice]]:
    """Blank out ``VERSION AS OF 3`` and ``@tag``; return what they choose, by the first word of the table's name.

    Where the table is none of Lance they stay, for Spark.
    """
    splices: list[Splice] = []
    choices: dict[int, VersionChoice] = {}
    for name in chains(statement):
        cursor = Cursor(statement, name.after)
        follows = cursor.peek()
        if follows not in ("@", "VERSION", "TIMESTAMP", "FOR"):
            continue
        before = statement.words[name.first - 1].upper if name.first else ""
        if follows != "@" and before not in _BEFORE | {",", "("}:
            continue
        is_lance = find_place(spark, name) is not None
        if not is_lance:
            continue
        choice = _read_choice(spark, cursor)
        if choice is None:
            continue
        first, last = statement.words[name.after], statement.words[cursor.at - 1]
        blank = " " * (last.end - first.start)
        splices.append(Splice(first.start, last.end, blank))
        choices[name.first] = choice
    if not splices:
        return statement, choices
    return Statement.of(spliced(statement.text, splices)), _renumbered(statement, splices, choices)


def _read_choice(spark: SparkSession, cursor: Cursor) -> VersionChoice | None:
    ref = read_ref(cursor)
    return VersionChoice(ref=ref) if ref is not None else read_version(spark, cursor)


def _renumbered(
    statement: Statement, splices: Sequence[Splice], choices: dict[int, VersionChoice]
) -> dict[int, VersionChoice]:
    """Return choices by the numbers that words have when some are blank."""

    def number(first: int) -> int:
        begin = statement.words[first].start
        gone = [
            word
            for word in statement.words[:first]
            if any(each.start <= word.start < each.end for each in splices) and word.start < begin
        ]
        return first - len(gone)

    return {number(first): choice for first, choice in choices.items()}


# --- by the tree -----------------------------------------------------------------------------------


def _tree_of(statement: Statement) -> exp.Expr | None:
    if any(word.upper in _UNSURE for word in statement.words):
        return None
    begin = _begin_of_query(statement)
    if begin is None:
        return None
    text = " " * begin + statement.text[begin:]
    try:
        return sqlglot.parse_one(text, dialect="spark")
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        return None


def _begin_of_query(statement: Statement) -> int | None:
    """Return where the query of a statement begins, or the expression that it is; None if there is no query."""
    if not statement.words or statement.words[0].upper not in _STATEMENTS:
        return 0
    depth = 0
    for word in statement.words:
        depth += (word.upper == "(") - (word.upper == ")")
        if depth == 0 and word.upper in _QUERIES:
            return word.start
    return None


def _tables_of(
    spark: SparkSession,
    statement: Statement,
    tree: exp.Expr,
    choices: dict[int, VersionChoice],
) -> list[Reference] | None:
    """Return the Lance tables of a tree; None if they cannot be placed in the text."""
    if isinstance(tree, exp.Command) or _has_bare_table(statement):
        return None
    starts = {statement.words[name.first].start: name for name in chains(statement)}
    found: list[Reference] = []
    for node in tree.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier):
            continue  # a table function
        first = node.parts[0]
        name = starts.get(first.meta.get("start", -1))
        if name is None or len(node.parts) != len(name.parts):
            return None
        if _is_common_table(node, name):
            continue
        reference = _reference(spark, statement, name, choices)
        if reference is None:
            check_known(spark, name)
        else:
            alias = node.alias or None
            found.append(replace(reference, node=node, alias=alias, needs_alias=alias is None))
    return found


def _has_bare_table(statement: Statement) -> bool:
    """Return whether ``TABLE t`` or ``TABLE(t)`` stands in a query; sqlglot knows neither."""
    words = statement.words
    for number, word in enumerate(words[:-1]):
        if word.upper != "TABLE" or (number and words[number - 1].upper == "."):
            continue
        follows = words[number + 1]
        if follows.is_name or follows.upper == "(":
            before = words[number - 1].upper if number else ""
            if before not in ("CREATE", "REPLACE", "INTO", "OVERWRITE", "INSERT", "TEMPORARY"):
                return True
    return False


def _is_common_table(node: exp.Table, name: Name) -> bool:
    """Return whether a name is that of a common table expression which is visible where it stands."""
    if len(name.parts) > 1:
        return False
    wanted = name.parts[0].lower()
    below: exp.Expr = node
    above = node.parent
    while above is not None:
        clause = above.args.get("with_")
        if isinstance(clause, exp.With) and below is not clause:
            if any(each.alias.lower() == wanted for each in clause.expressions):
                return True
        elif isinstance(above, exp.With):
            visible = above.expressions
            if not above.args.get("recursive"):
                visible = visible[: _place_among(visible, below)]
            if any(each.alias.lower() == wanted for each in visible):
                return True
        below, above = above, above.parent
    return False


def _place_among(expressions: Sequence[exp.Expr], wanted: exp.Expr) -> int:
    return next(number for number, each in enumerate(expressions) if each is wanted)


# --- word by word ----------------------------------------------------------------------------------


def _tables_among(
    spark: SparkSession, statement: Statement, choices: dict[int, VersionChoice]
) -> list[Reference]:
    """Return the Lance tables of a statement that is not parsed, by the words before them."""
    common = _common_names(statement)
    found: list[Reference] = []
    for name in chains(statement):
        if len(name.parts) == 1 and name.parts[0].lower() in common:
            continue
        if _stands_for_table(statement, name):
            reference = _reference(spark, statement, name, choices)
            if reference is not None:
                found.append(_with_alias(statement, reference))
    return found


def _common_names(statement: Statement) -> set[str]:
    """Return what is defined by ``name AS (`` and ``name (columns) AS (``, in lower case."""
    found: set[str] = set()
    words = statement.words
    if not any(word.upper == "WITH" for word in words):
        return found
    for number, word in enumerate(words[:-2]):
        follows = [each.upper for each in words[number + 1 : number + 3]]
        if word.is_name and follows == ["AS", "("]:
            found.add(word.text.lower())
    return found


def _stands_for_table(statement: Statement, name: Name) -> bool:
    words = statement.words
    before = words[name.first - 1].upper if name.first else ""
    follows = words[name.after].upper if name.after < len(words) else ""
    if follows == "(":
        return False
    if before in _BEFORE or (before == "USING" and words[0].upper == "MERGE"):
        return True
    if before == "(" and name.first > 1 and words[name.first - 2].upper in _BEFORE:
        return True
    return before == "," and _clause_at(statement, name.first) in ("FROM", "JOIN")


def _clause_at(statement: Statement, at: int) -> str:
    """Return the clause in which a word stands, at its own depth of parentheses."""
    depth = 0
    for number in range(at - 1, -1, -1):
        word = statement.words[number].upper
        depth += (word == ")") - (word == "(")
        if depth < 0:
            return ""
        if depth == 0 and word in _CLAUSES | {"JOIN"}:
            return word
    return ""


def _with_alias(statement: Statement, reference: Reference) -> Reference:
    cursor = Cursor(statement, reference.name.after)
    before = statement.words[reference.name.first - 1].upper if reference.name.first else ""
    if before == "TABLE" or (
        before == "("
        and reference.name.first > 1
        and statement.words[reference.name.first - 2].upper == "TABLE"
    ):
        return replace(reference, needs_alias=False)
    _pass_sample(cursor)
    has_as = cursor.takes("AS")
    word = cursor.peek()
    is_alias = (
        not cursor.is_done and cursor.words[cursor.at].is_name and (has_as or word not in _NO_ALIAS)
    )
    if not is_alias:
        return reference
    return replace(reference, alias=cursor.identifier(), needs_alias=False)


# --- both ------------------------------------------------------------------------------------------


def _reference(
    spark: SparkSession, statement: Statement, name: Name, choices: dict[int, VersionChoice]
) -> Reference | None:
    place = find_place(spark, name)
    if place is None:
        return None
    cursor = Cursor(statement, name.after)
    _pass_sample(cursor)
    after = statement.words[cursor.at - 1].end
    return Reference(name, place, choices.get(name.first, NEWEST), None, after)


def _pass_sample(cursor: Cursor) -> None:
    if cursor.takes("TABLESAMPLE"):
        cursor.takes_any("SYSTEM", "BERNOULLI")
        cursor.group()
        if cursor.takes("REPEATABLE"):
            cursor.group()


def names_of_catalogs(spark: SparkSession, statement: Statement) -> Iterator[Name]:
    """Yield the names of a statement that begin with a catalog of the session, or are paths of Lance tables."""
    attached = catalogs_of(spark)
    for name in chains(statement):
        is_named = len(name.parts) > 1 and attached.named(name.parts[0]) is not None
        if is_named or is_path(name.parts):
            yield name
