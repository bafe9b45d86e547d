"""SELECTs whose aggregates are made where their table is read, wherever they stand in a query.

The tasks that read the table group its rows by all columns that stand outside of aggregates, and make partial aggregates
(`pennon.spark.frames.measures`).  Spark sees these in place of the rows, and merges them: in the user's text each
aggregate becomes the SQL that merges its parts, and all else (GROUP BY, HAVING, ORDER BY, LIMIT) stays.  Groups that are finer
than those of the query, as with ``GROUP BY year(day)``, merge to the same.

A SELECT is left as it is, and reads rows, if it joins, if a part of its WHERE is not exactly our scan's, if it has a subquery, a
window or an aggregate that is not here, or if a column that it groups by may be equal in Spark and not in Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import sqlglot
from pyspark.sql import types as st
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pennon.spark.frames.arithmetic import Number, computed, constant, stored, text_length
from pennon.spark.frames.measures import is_ordered, merged_aggregate
from pennon.spark.frames.partial_aggregates import Part
from pennon.spark.names import quoted
from pennon.spark.statements.pruning import sources_of
from pennon.spark.statements.references import ParsedQuery, Reference
from pennon.spark.statements.words import Splice, Statement

FindColumn = Callable[[exp.Expr], str | None]
"""Returns the column of the table that a tree is; None if it is none."""
_FUNCTIONS: Final[Mapping[type[exp.Expr], str]] = {
    exp.Count: "count", exp.Sum: "sum", exp.Min: "min", exp.Max: "max", exp.Avg: "avg"
}  # fmt: skip
_WORDS: Final = frozenset({"COUNT", "SUM", "MIN", "MAX", "AVG"})
_OPERATIONS: Final[Mapping[type[exp.Expr], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_NOT_GROUPED: Final = (
    "joins", "laterals", "qualify", "windows", "into", "hint", "kind", "sample", "pivots", "cluster", "distribute", "sort",
)  # fmt: skip
_NOT_UNDERSTOOD: Final = (
    exp.Window, exp.Filter, exp.WithinGroup, exp.Anonymous, exp.AnonymousAggFunc, exp.Subquery, exp.UDTF, exp.Rand,
    exp.Randn, exp.Uuid,
)  # fmt: skip
_ENDS_OF_WHERE: Final = frozenset(
    {
        "GROUP",
        "HAVING",
        "ORDER",
        "LIMIT",
        "OFFSET",
        "SORT",
        "CLUSTER",
        "DISTRIBUTE",
        "WINDOW",
        "QUALIFY",
    }
)
_SET_OPERATORS: Final = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS"})


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """An aggregate of a SELECT: the words that it is, its function, and the tree of what it is of."""

    first: int
    after: int
    function: str
    tree: exp.Expr


@dataclass(frozen=True, slots=True)
class Grouping:
    """Keys and partial aggregates that tasks make of a table's rows, and the changes of the text of its SELECT."""

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    parts: tuple[Part, ...]
    computed: tuple[tuple[str, Number], ...]
    splices: tuple[Splice, ...]

    def __str__(self) -> str:
        by = f" by {', '.join(self.keys)}" if self.keys else ""
        return f"partial aggregates{by}"


def find_grouping(
    query: ParsedQuery,
    reference: Reference,
    schema: st.StructType,
    column: FindColumn,
    is_ansi: Callable[[], bool],
) -> Grouping | None:
    """Return how the rows of a table are aggregated where they are read; None if they have to come out as they are.

    The scan applies the whole WHERE of its SELECT.  ``is_ansi``: whether a sum that its type does not hold is an error.
    """
    node = reference.node
    select = None if node is None else node.find_ancestor(exp.Select, exp.SetOperation)
    if not isinstance(select, exp.Select) or not _may_group(select, reference):
        return None
    words = _words_of(query.statement, reference)
    if words is None:
        return None
    found = list(_aggregates(query.statement, *words))
    trees = [each for each in select.find_all(exp.AggFunc) if not _is_in_where(each, select)]
    if len(found) != len(trees) or not (
        trees or select.args.get("group") or select.args.get("distinct")
    ):
        return None
    builder = _Builder(query.statement, schema, column, is_ansi)
    if not builder.adds_keys(select) or not all(map(builder.adds, found)):
        return None
    if not builder.names(select, words, found):
        return None
    return builder.grouping(_where_of(query.statement, *words))


def _may_group(select: exp.Select, reference: Reference) -> bool:
    source = select.args.get("from_")
    if source is None or source.this is not reference.node:
        return False
    if any(select.args.get(key) for key in _NOT_GROUPED):
        return False
    if len(list(select.find_all(exp.Query))) > 1 or len(list(sources_of(select))) > 1:
        return False
    known = (*_FUNCTIONS, exp.Distinct)
    return not any(
        isinstance(each, _NOT_UNDERSTOOD)
        or (isinstance(each, exp.AggFunc) and not isinstance(each, known))
        or (isinstance(each, exp.Star) and not isinstance(each.parent, exp.Count))
        for each in select.walk()
    )


def _is_in_where(node: exp.Expr, select: exp.Select) -> bool:
    where = select.args.get("where")
    return where is not None and any(above is where for above in _above(node))


def _above(node: exp.Expr | None) -> Iterator[exp.Expr]:
    while node is not None:
        yield node
        node = node.parent


# --- the text of a SELECT -------------------------------------------------------------------------


def _words_of(statement: Statement, reference: Reference) -> tuple[int, int] | None:
    """Return the first word of the SELECT that a table stands in, and the one after its last."""
    words = statement.words
    depth, first, begin = 0, None, reference.name.first
    for at in range(begin - 1, -1, -1):
        depth += _depth(words[at].upper, opening=-1)
        if depth < 0:
            break
        if depth == 0 and words[at].upper == "SELECT":
            first = at
            break
    if first is None:
        return None
    depth = 0
    for at in range(first, len(words)):
        depth += _depth(words[at].upper, opening=1)
        if depth < 0 or (depth == 0 and words[at].upper in _SET_OPERATORS):
            return first, at
    return first, len(words)


def _depth(word: str, *, opening: int) -> int:
    if word in ("(", "["):
        return opening
    return -opening if word in (")", "]") else 0


def _at_top(statement: Statement, first: int, after: int) -> Iterator[tuple[int, str]]:
    """Yield the words that stand in no parentheses."""
    depth = 0
    for at in range(first, after):
        word = statement.words[at].upper
        change = _depth(word, opening=1)
        if depth == 0 and change == 0:
            yield at, word
        depth += change


def _where_of(statement: Statement, first: int, after: int) -> Splice | None:
    """Return what takes the WHERE out of a SELECT; None if it has none."""
    begin = None
    for at, word in _at_top(statement, first, after):
        if word == "WHERE":
            begin = at
        elif begin is not None and word in _ENDS_OF_WHERE:
            return _without(statement, begin, at)
    return None if begin is None else _without(statement, begin, after)


def _without(statement: Statement, first: int, after: int) -> Splice:
    return Splice(statement.words[first].start, statement.words[after - 1].end, "")


def _aggregates(statement: Statement, first: int, after: int) -> Iterator[Aggregate]:
    """Yield the aggregates among some words, in their order; those of WHERE would be an error of the query."""
    words = statement.words
    at = first
    while at < after - 1:
        is_call = words[at].upper in _WORDS and words[at + 1].upper == "("
        if not is_call or words[at - 1].upper == ".":
            at += 1
            continue
        end = _after_parenthesis(statement, at + 1, after)
        tree = _parsed(statement.slice(at, end))
        if tree is not None:
            yield Aggregate(at, end, _FUNCTIONS[type(tree)], tree)
        at = end


def _after_parenthesis(statement: Statement, opening: int, after: int) -> int:
    depth = 0
    for at in range(opening, after):
        depth += _depth(statement.words[at].upper, opening=1)
        if depth == 0:
            return at + 1
    return after


def _parsed(text: str) -> exp.Expr | None:
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        return None
    return tree if type(tree) in _FUNCTIONS else None


def _items_of(statement: Statement, first: int, after: int) -> list[tuple[int, int]]:
    """Return the words of each item between SELECT and FROM."""
    begin, items = first + 1, []
    if begin < after and statement.words[begin].upper in ("DISTINCT", "ALL"):
        begin += 1
    for at, word in _at_top(statement, begin, after):
        if word in (",", "FROM"):
            items.append((begin, at))
            begin = at + 1
            if word == "FROM":
                break
    return items


# --- what is made of it ---------------------------------------------------------------------------


@dataclass(slots=True)
class _Builder:
    """Collects keys, partial aggregates and changes of the text."""

    statement: Statement
    schema: st.StructType
    column: FindColumn
    is_ansi: Callable[[], bool]
    keys: dict[str, None] = field(default_factory=dict)
    columns: dict[str, None] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    computed: dict[str, Number] = field(default_factory=dict)
    merged: dict[Aggregate, str] = field(default_factory=dict)
    """The SQL that merges an aggregate; those that Spark makes of the keys are not here."""
    aliases: dict[Aggregate, str] = field(default_factory=dict)
    known: dict[tuple[str, str], str] = field(default_factory=dict)

    def adds_keys(self, select: exp.Select) -> bool:
        """Take the columns outside of aggregates for keys; False if one cannot be."""
        aggregated = {
            id(each)
            for function in select.find_all(exp.AggFunc)
            for each in function.find_all(exp.Column)
        }
        for each in select.find_all(exp.Column):
            if (
                id(each) not in aggregated
                and not _is_in_where(each, select)
                and not self._adds_key(each)
            ):
                return False
        return True

    def _adds_key(self, tree: exp.Expr) -> bool:
        name = self.column(tree)
        if name is None:  # an alias of the query, or something that is not understood
            is_alias = (
                isinstance(tree, exp.Column)
                and not tree.table
                and tree.name not in self.schema.names
            )
            return is_alias and not tree.name.startswith("_")
        self.keys[name] = self.columns[name] = None
        return is_ordered(self.schema[name].dataType)

    def adds(self, aggregate: Aggregate) -> bool:
        """Add the parts of an aggregate; False if tasks cannot make them."""
        inner = aggregate.tree.this
        if isinstance(inner, exp.Distinct):  # of the keys of finer groups
            return all(map(self._adds_key, inner.find_all(exp.Column)))
        if aggregate.tree.args.get("expressions"):
            return False
        of = self._aggregated(aggregate.function, inner)
        if of is None:
            return False
        name, kind = of
        known = self.known.get((aggregate.function, name))
        if known is None:
            made = merged_aggregate(
                len(self.known), aggregate.function, name, kind, is_ansi=self.is_ansi()
            )
            if made is None:
                return False
            self.parts += made.parts
            known = self.known[aggregate.function, name] = made.sql
        self.merged[aggregate] = known
        return True

    def _aggregated(self, function: str, inner: exp.Expr) -> tuple[str, st.DataType | None] | None:
        """Return the column that an aggregate is of, or the computed number, and its type; ``*``: of rows."""
        is_rows = isinstance(inner, exp.Star) and not inner.args.get("except_")
        is_constant = isinstance(inner, exp.Literal) and inner.is_int
        if function == "count" and (is_rows or is_constant):
            return "*", None
        name = self.column(inner)
        if name is not None:
            self.columns[name] = None
            return name, self.schema[name].dataType
        used: dict[str, None] = {}
        number = _number(inner, self.schema, self.column, used)
        if number is None or not used or not self.is_ansi():
            return None
        self.columns |= used
        same = next((name for name, each in self.computed.items() if each == number), None)
        name = same or f"__pennon_computed_{len(self.computed)}"
        self.computed[name] = number
        return name, number.kind

    def names(self, select: exp.Select, words: tuple[int, int], found: Sequence[Aggregate]) -> bool:
        """Give aggregates that are shown the names that Spark gives them; False where these are not certain."""
        items = _items_of(self.statement, *words)
        if len(items) != len(select.expressions):
            return False
        merged = [each for each in found if each in self.merged]
        for (first, after), tree in zip(items, select.expressions, strict=True):
            inside = [each for each in merged if first <= each.first < after]
            if not inside or isinstance(tree, exp.Alias):
                continue
            is_whole = inside[0].first == first and inside[0].after == after
            name = self._name(inside[0]) if is_whole else None
            if name is None:
                return False
            self.aliases[inside[0]] = name
        return True

    def _name(self, aggregate: Aggregate) -> str | None:
        """Return what Spark calls an aggregate without an alias."""
        inner = aggregate.tree.this
        function = self.statement.words[aggregate.first].text.lower()
        name = "1" if isinstance(inner, exp.Star) else _shown(inner)
        return None if name is None else f"{function}({name})"

    def grouping(self, where: Splice | None) -> Grouping:
        """Return all that was found."""
        words = self.statement.words
        splices = [] if where is None else [where]
        for aggregate, sql in self.merged.items():
            begin, end = words[aggregate.first].start, words[aggregate.after - 1].end
            name = self.aliases.get(aggregate)
            alias = "" if name is None else f" AS {quoted(name)}"
            splices.append(Splice(begin, end, sql + alias))
        return Grouping(
            tuple(self.keys),
            tuple(name for name in self.schema.names if name in self.columns),
            tuple(self.parts),
            tuple(self.computed.items()),
            tuple(splices),
        )


def _number(
    tree: exp.Expr, schema: st.StructType, column: FindColumn, used: dict[str, None]
) -> Number | None:
    """Return what an expression computes of columns, which are added to ``used``."""
    if isinstance(tree, exp.Paren):
        return _number(tree.this, schema, column, used)
    if isinstance(tree, exp.Literal):
        return None if tree.is_string else constant(tree.name)
    operation = _OPERATIONS.get(type(tree))
    if operation is not None:
        left = _number(tree.this, schema, column, used)
        right = _number(tree.expression, schema, column, used)
        return None if left is None or right is None else computed(operation, left, right)
    is_length = type(tree) is exp.Length
    name = column(tree.this if is_length else tree)
    if name is None:
        return None
    used[name] = None
    kind = schema[name].dataType
    return text_length(name, kind) if is_length else stored(name, kind)


def _shown(tree: exp.Expr) -> str | None:
    """Return what Spark calls an expression of columns and numbers; None if that is not certain."""
    if isinstance(tree, exp.Paren):
        return _shown(tree.this)
    if isinstance(tree, exp.Column):
        return tree.name
    if isinstance(tree, exp.Literal) and tree.is_int:
        return tree.name
    sign = _OPERATIONS.get(type(tree))
    both = [] if sign is None else [_shown(tree.this), _shown(tree.expression)]
    return f"({both[0]} {sign} {both[1]})" if both and None not in both else None
