"""Queries that are the aggregates of one table and nothing else: their answer may be known without a job.

``SELECT count(*) FROM t`` is in the manifest, ``SELECT max(day) FROM t`` may be in statistics.  Other queries with aggregates are
those of `pennon.spark.statements.grouping`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from sqlglot import exp

from pennon.spark.names import find_name, quoted
from pennon.spark.statements.references import Reference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_AGGREGATES: Final[Mapping[type[exp.Expr], str]] = {
    exp.Count: "count", exp.Sum: "sum", exp.Min: "min", exp.Max: "max"
}  # fmt: skip
_NOT_AGGREGATED: Final = (
    "with_", "joins", "laterals", "having", "order", "sort", "cluster", "distribute", "limit", "offset", "distinct",
    "qualify", "windows", "into", "hint", "kind", "sample", "pivots",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OnlyAggregates:
    """The aggregates of a SELECT, as `pennon.spark.frames.aggregate` takes them."""

    measures: Mapping[str, list[str]]
    keys: tuple[str, ...]
    shown: tuple[tuple[str, str], ...]
    """The columns of the aggregates that are shown, each with the name that the query gives it."""

    @classmethod
    def of(cls, select: exp.Select, known: KnownColumns) -> OnlyAggregates | None:
        """Return the aggregates, if there is nothing else; None if there is."""
        keys = [known.find(key) for key in _group_keys(select)]
        measures: dict[str, list[str]] = {}
        shown = [_shown_item(item, keys, known, measures) for item in select.expressions]
        columns = [each for each in shown if each is not None]
        by_name = [key for key in keys if key is not None]
        if not measures or len(columns) < len(shown) or len(by_name) < len(keys):
            return None
        return cls(measures, tuple(by_name), tuple(columns))

    def of_rows(self, rows: DataFrame) -> DataFrame:
        """Return what the SELECT shows of the aggregates."""
        made = [
            _made(each, name) for name, functions in self.measures.items() for each in functions
        ]
        if [column for column, _ in self.shown] == [*self.keys, *made]:
            return rows.toDF(*(name for _, name in self.shown))  # one call of the JVM
        return rows.select(*(sf.col(quoted(column)).alias(name) for column, name in self.shown))


def is_only_aggregates(select: exp.Select) -> bool:
    """Return whether a SELECT has no clause that aggregates alone do not answer."""
    return not any(select.args.get(key) for key in _NOT_AGGREGATED)


@dataclass(frozen=True, slots=True)
class KnownColumns:
    """The columns of the only table of a query."""

    reference: Reference
    names: tuple[str, ...]
    case_sensitive: bool

    def find(self, tree: exp.Expr | None) -> str | None:
        """Return the column that a tree is, as the table calls it; None if it is something else."""
        if not isinstance(tree, exp.Column) or tree.args.get("db"):
            return None
        if not isinstance(tree.this, exp.Identifier) or "." in tree.name or "`" in tree.name:
            return None
        if tree.table and tree.table.lower() not in self.reference.qualifiers:
            return None
        same = [each for each in self.names if each.lower() == tree.name.lower()]
        return (
            find_name(tree.name, same, case_sensitive=self.case_sensitive)
            if len(same) == 1
            else None
        )


def _shown_item(
    item: exp.Expr,
    keys: Sequence[str | None],
    known: KnownColumns,
    measures: dict[str, list[str]],
) -> tuple[str, str] | None:
    """Return an item of a SELECT as a column of the aggregates, which are added to ``measures``, and its name."""
    tree = item.unalias()
    alias = item.alias if isinstance(item, exp.Alias) else None
    key = known.find(tree)
    if key is not None and key in keys:
        return key, alias or tree.name
    measure = _measure(tree, known)
    if measure is None:
        return None
    function, name = measure
    functions = measures.setdefault(name, [])
    if function not in functions:
        functions.append(function)
    made = _made(function, name)
    typed = made if name == "*" else f"{function}({tree.this.name})"
    return made, alias or typed


def _made(function: str, column: str) -> str:
    """Return what `pennon.spark.frames.aggregate` calls an aggregate."""
    return f"{function}({'1' if column == '*' else column})"


def _group_keys(select: exp.Select) -> Sequence[exp.Expr | None]:
    """Return the keys of GROUP BY; one of them is None if there is more than keys."""
    group = select.args.get("group")
    if group is None:
        return []
    extra = ("grouping_sets", "cube", "rollup", "totals", "all")
    return [None] if any(group.args.get(key) for key in extra) else list(group.expressions)


def _measure(tree: exp.Expr, known: KnownColumns) -> tuple[str, str] | None:
    """Return the function and the column of an aggregate, ``*`` for all rows; None if it is none of ours."""
    function = _AGGREGATES.get(type(tree))
    if function is None or tree.args.get("expressions"):
        return None
    inner = tree.this
    is_rows = isinstance(inner, exp.Star) and not inner.args.get("except_")
    is_one = isinstance(inner, exp.Literal) and inner.is_int and inner.name == "1"
    if function == "count" and (is_rows or is_one):
        return function, "*"
    name = known.find(inner)
    return None if name is None else (function, name)
