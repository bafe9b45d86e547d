"""Columns of a take that are computed from others.

The columns that expressions need are taken beside those that are shown, under marked names: shown
columns may have the names of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Final

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.expr.evaluate import evaluate
from pennon.expr.tree import Expression, paths_of
from pennon.scan.filter import parse_expression
from pennon.scan.projection import MetaColumn, is_column, plan_scan_projection
from pennon.schema.field import Schema
from pennon.schema.project import quoted

_MARK: Final = "\0"
_NOT_STORED: Final = frozenset(meta.value for meta in MetaColumn)


@dataclass(frozen=True, slots=True)
class TakenExpressions:
    """Expressions, the columns they need, and the names of all that is shown, in order."""

    expressions: Mapping[str, Expression]
    needed: tuple[str, ...]
    order: tuple[str, ...]

    def show(self, taken: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that were asked for, of those that were read."""
        marked = [_MARK + name for name in self.needed]
        inputs = taken.select(marked).rename_columns(list(self.needed))
        arrays = [
            evaluate(self.expressions[name], inputs)
            if name in self.expressions
            else taken.column(name)
            for name in self.order
        ]
        fields = [
            pa.field(name, array.type) if name in self.expressions else taken.schema.field(name)
            for name, array in zip(self.order, arrays, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, taken.schema.metadata))


def split_computed(
    schema: Schema, columns: Mapping[str, str]
) -> tuple[Mapping[str, str], TakenExpressions | None]:
    """Return the columns to read by the names to read them under, and what is computed of them.

    Raises ArgumentError for what is neither a column nor an expression.
    """
    plain = {name: source for name, source in columns.items() if is_column(schema, source)}
    if len(plain) == len(columns):
        return columns, None
    table = plan_scan_projection(schema, None, list(MetaColumn)).arrow
    computed = {
        name: parse_expression(text, table) for name, text in columns.items() if name not in plain
    }
    paths = chain.from_iterable(map(paths_of, computed.values()))
    needed = tuple(dict.fromkeys(path[0] for path in paths))
    marked = {_MARK + name: _quoted(name) for name in needed}
    return {**plain, **marked}, TakenExpressions(computed, needed, tuple(columns))


def _quoted(name: str) -> str:
    """Return a top-level name as it is written among columns."""
    if name in _NOT_STORED:
        return name
    return quoted(name)
