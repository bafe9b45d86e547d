"""Equalities between the tables of a query: which table's keys say which rows of another one are of no use.

A link says: a row of the target without a partner in the source, by a column of each, changes nothing of the answer, whatever
rows the two tables have.  The conditions that say so are

- ``a = b`` in a WHERE, or in the ON of a join, that drops rows of the target (`pennon.spark.statements.pushing`);
- the same in the WHERE of a subquery, where one of them is a column of the query around it.  That drops rows inside of any
  subquery, be it ``EXISTS``, ``NOT EXISTS``, ``IN`` or a value; around it, of an ``EXISTS``;
- ``a IN (SELECT b …)``.  ``NOT IN`` is none: there a NULL on either side decides about all rows.

So tables may be limited by each other one after the other, in any order, and as often as one likes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from pennon.spark.statements.pruning import sources_of
from pennon.spark.statements.pushing import Scope, conjuncts

_BETWEEN = (exp.Select, exp.SetOperation, exp.With, exp.From, exp.Join, exp.Lateral)
"""What a subquery of a condition does not stand in, below the SELECT of the condition."""


@dataclass(frozen=True, slots=True)
class Link:
    """Rows of the target whose column is none of the source's values are of no use; tables are known by their numbers."""

    source: int
    source_column: str
    target: int
    target_column: str


@dataclass(frozen=True, slots=True)
class _Found:
    """A column of a table; ``drops``: rows of the table for which the condition does not hold are dropped."""

    table: int
    column: str
    drops: bool


def links_of(scopes: Sequence[Scope | None]) -> list[Link]:
    """Return the links between tables, each known by its place in its SELECT; None: nothing is certain about it."""
    selects: dict[int, _Select] = {}
    for number, scope in enumerate(scopes):
        if scope is not None:
            found = selects.setdefault(id(scope.select), _Select(scope.select, {}))
            found.scopes[number] = scope
    links = (link for each in selects.values() for link in _links_in(each, selects))
    return list(dict.fromkeys(links))


@dataclass(frozen=True, slots=True)
class _Select:
    """A SELECT with the Lance tables of its FROM."""

    tree: exp.Select
    scopes: dict[int, Scope]

    def where(self) -> list[exp.Expr]:
        """Return the AND parts of WHERE."""
        where = self.tree.args.get("where")
        return [] if where is None else list(conjuncts(where.this))

    def conditions(self) -> Iterator[tuple[exp.Expr, int | None]]:
        """Yield the AND parts of ON with the numbers of their joins, and those of WHERE."""
        yield from ((part, None) for part in self.where())
        for number, join in enumerate(self.tree.args.get("joins") or (), start=1):
            on = join.args.get("on")
            yield from ((part, number) for part in (() if on is None else conjuncts(on)))

    def find(self, side: exp.Expr, part: exp.Expr, join: int | None = None) -> _Found | None:
        """Return the table that a name in a part of WHERE or ON means; None if it is none of them, or not certain."""
        if not isinstance(side, exp.Column):
            return None
        found = [
            _Found(number, name, scope.keeps_rows if join is None else _is_among(part, scope.on))
            for number, scope in self.scopes.items()
            if (scope.is_seen and (join is None or scope.at <= join)) or scope.at == join
            for name in [scope.column(side)]
            if name is not None
        ]
        return found[0] if len(found) == 1 else None

    def lacks(self, side: exp.Expr) -> bool:
        """Return whether a name is certain to mean nothing of this SELECT."""
        if not isinstance(side, exp.Column) or side.args.get("db") or side.args.get("catalog"):
            return False
        if len(list(sources_of(self.tree))) != len(self.scopes) or self.tree.args.get("laterals"):
            return False
        source = self.tree.args["from_"].this
        joins = [join.this for join in self.tree.args.get("joins") or ()]
        if not all(isinstance(each, exp.Table) for each in (source, *joins)):
            return False
        known = {name.lower() for each in self.scopes.values() for name in each.schema.names}
        if side.table:  # a table, or a struct with a field of that name
            return side.table.lower() not in known | {
                each.qualifier for each in self.scopes.values()
            }
        return side.name.lower() not in known


def _is_among(part: exp.Expr, parts: Sequence[exp.Expr]) -> bool:
    return any(part is each for each in parts)


def _links_in(select: _Select, selects: dict[int, _Select]) -> Iterator[Link]:
    for part, join in select.conditions():
        if isinstance(part, exp.EQ):
            yield from _of_equality(select, part, selects, join)
        elif isinstance(part, exp.In) and join is None:
            yield from _of_in(select, part, selects)


def _of_equality(
    select: _Select, part: exp.EQ, selects: dict[int, _Select], join: int | None
) -> Iterator[Link]:
    left, right = (select.find(side, part, join) for side in (part.this, part.expression))
    if left is None and right is None:
        return
    if left is not None and right is not None:
        if left.table != right.table:
            yield from _both(left, right)
        return
    outer_side = part.this if left is None else part.expression
    around = _around(select, selects) if join is None and select.lacks(outer_side) else None
    if around is None:
        return
    outer, condition = around
    other = outer.find(outer_side, condition)
    inner = left if right is None else right
    if other is None or inner is None:
        return
    is_dropped = other.drops and _is_exists(condition, select.tree)
    yield from _both(inner, _Found(other.table, other.column, is_dropped))


def _both(one: _Found, other: _Found) -> Iterator[Link]:
    for source, target in ((one, other), (other, one)):
        if target.drops:
            yield Link(source.table, source.column, target.table, target.column)


def _around(select: _Select, selects: dict[int, _Select]) -> tuple[_Select, exp.Expr] | None:
    """Return the SELECT that has another one in its WHERE, with the part of WHERE; None if it is elsewhere."""
    above = select.tree.find_ancestor(*_BETWEEN)
    outer = None if above is None else selects.get(id(above))
    if outer is None:
        return None
    node: exp.Expr | None = select.tree
    parts = outer.where()
    while node is not None and node is not outer.tree:
        if _is_among(node, parts):
            return outer, node
        node = node.parent
    return None


def _is_exists(condition: exp.Expr, select: exp.Select) -> bool:
    """Return whether a condition holds only if the WHERE of a SELECT does for some row."""
    if not isinstance(condition, exp.Exists) or condition.this is not select:
        return False
    plain = (exp.Column, exp.Literal, exp.Star)
    is_of_rows = all(isinstance(each.unalias(), plain) for each in select.expressions)
    return is_of_rows and not any(select.args.get(key) for key in ("group", "having"))


def _of_in(select: _Select, part: exp.In, selects: dict[int, _Select]) -> Iterator[Link]:
    query = part.args.get("query")
    inner_tree = query.this if isinstance(query, exp.Subquery) else query
    inner = selects.get(id(inner_tree))
    if inner is None or len(inner.tree.expressions) != 1:
        return
    shown = inner.tree.expressions[0].unalias()
    outer_found = select.find(part.this, part)
    inner_found = inner.find(shown, part)
    if outer_found is None or inner_found is None:
        return
    drops = inner_found.drops and _gives_rows_of(inner, inner_found)
    yield from _both(outer_found, _Found(inner_found.table, inner_found.column, drops))


def _gives_rows_of(select: _Select, found: _Found) -> bool:
    """Return whether a SELECT without some rows of a table gives the same without the values of a column in these rows."""
    tree = select.tree
    if any(tree.args.get(key) for key in ("limit", "offset", "qualify", "windows", "laterals")):
        return False
    if tree.find(exp.Window) is not None:
        return False
    group = tree.args.get("group")
    if group is None:
        return tree.args.get("having") is None
    if any(group.args.get(key) for key in ("grouping_sets", "cube", "rollup", "totals", "all")):
        return False
    keys = [select.find(each, each) for each in group.expressions]
    return any(key == found for key in keys)
