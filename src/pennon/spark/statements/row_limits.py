"""The number of rows of a table that are enough for a SELECT with a LIMIT, and the order in which they are the first ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from pennon.scan.plan.query import ColumnOrdering
from pennon.spark.frames.measures import is_ordered
from pennon.spark.frames.top_rows import MOST_TOP_ROWS, TopRows

if TYPE_CHECKING:
    from pyspark.sql import types as st

_ONE_TO_ONE: Final = (
    exp.Column, exp.Identifier, exp.Literal, exp.Star, exp.Alias, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul,
    exp.Boolean, exp.Null,
)  # fmt: skip
"""The expressions that give one row for each row of a table: a SELECT of these with LIMIT 5 needs 5 rows of it."""
_MOST_LIMIT: Final = 1 << 31


def limit_of(select: exp.Select) -> int | None:
    """Return how many rows of the only table are enough, if the first ones are, in its order or in that of ORDER BY."""
    limit = select.args.get("limit")
    if not isinstance(limit, exp.Limit):
        return None
    others = (
        "group",
        "having",
        "sort",
        "cluster",
        "distribute",
        "qualify",
        "windows",
        "distinct",
    )
    if any(select.args.get(key) for key in others):
        return None
    if not all(_is_one_to_one(each) for each in select.expressions):
        return None
    offset = select.args.get("offset")
    rows = _whole(limit.expression), 0 if offset is None else _whole(offset.expression)
    if rows[0] is None or rows[1] is None or rows[0] + rows[1] >= _MOST_LIMIT:
        return None
    return rows[0] + rows[1]


def top_of(
    select: exp.Select, column: Callable[[exp.Column], str | None], schema: st.StructType, rows: int
) -> TopRows | None:
    """Return the first rows in the order of a SELECT; None if it has none, or one that is not exactly Arrow's.

    ``column`` returns the column of the only table that a name is, None if it is none.
    """
    order = select.args.get("order")
    if order is None or not 0 < rows <= MOST_TOP_ROWS:
        return None
    shown = {each.output_name: each.unalias() for each in select.expressions}
    found = []
    for each in order.expressions:
        tree = _sorted_by(each.this, shown)
        name = column(tree) if isinstance(tree, exp.Column) else None
        if name is None or not is_ordered(schema[name].dataType):
            return None
        nulls_first = bool(each.args.get("nulls_first"))
        found.append(ColumnOrdering(name, not each.args.get("desc"), nulls_first))
    return TopRows(tuple(found), rows)


def _sorted_by(tree: exp.Expr, shown: Mapping[str, exp.Expr]) -> exp.Expr | None:
    """Return the expression that a name in ORDER BY is; None if it may be one of two.

    Spark looks among the columns that the SELECT shows first, and then among those of its table.
    """
    if not isinstance(tree, exp.Column) or tree.table:
        return tree
    same = [name for name in shown if name.lower() == tree.name.lower()]
    if not same:
        return tree
    return shown[tree.name] if same == [tree.name] else None


def _is_one_to_one(tree: exp.Expr) -> bool:
    return all(isinstance(node, _ONE_TO_ONE) for node in tree.walk())


def _whole(tree: exp.Expr | None) -> int | None:
    is_number = isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdecimal()
    return int(tree.name) if is_number and tree is not None else None
