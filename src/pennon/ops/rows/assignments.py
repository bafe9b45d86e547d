"""New values for columns: SQL expressions over the old row, of the types of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pennon.core.near_names import did_you_mean
from pennon.core.units import FieldId
from pennon.errors import ArgumentError, Breadcrumb
from pennon.expr.cast import cast
from pennon.expr.evaluate import evaluate
from pennon.expr.tree import Cast, Expression, Literal
from pennon.ops.rows.rewrite_rows import Moved
from pennon.scan.predicate import parse_expression
from pennon.scan.projection import Projection, plan_scan_projection
from pennon.schema.arrow import schema_to_arrow, storage_field
from pennon.schema.field import Field, Schema


@dataclass(frozen=True, slots=True)
class Assignments:
    """The new values of columns; computes updated rows from old ones."""

    needs: Projection
    by_column: Mapping[str, Expression] = field(default_factory=dict)

    @classmethod
    def parse(cls, schema: Schema, updates: Mapping[str, str]) -> Assignments:
        """Bind SQL expressions to a table: each sees the row as it was.

        Raises ArgumentError for a column that is not there, and for an expression that is not one,
        or whose type does not become the column's.
        """
        if not updates:
            message = "an update names at least one column"
            raise ArgumentError(message)
        columns = {top.name: top for top in schema.fields}
        arrow = schema_to_arrow(schema)
        found = {}
        for name, text in updates.items():
            _check_column(name, text, columns)
            found[name] = _typed(parse_expression(text, arrow), columns[name])
        return cls(plan_scan_projection(schema, None), found)

    @classmethod
    def of_literals(cls, schema: Schema, values: Mapping[str, pa.Scalar]) -> Assignments:
        """Return what gives columns of a table values of their own types."""
        literals = {name: Literal(value) for name, value in values.items()}
        return cls(plan_scan_projection(schema, None), {**literals})

    def field_ids(self) -> tuple[FieldId, ...]:
        """Return the ids of the fields that change."""
        tops = [top for top in self.needs.read.fields if top.name in self.by_column]
        return tuple(below.id for top in tops for below in top.walk())

    @property
    def row_bytes(self) -> int:
        """Return 0: new values are made of old rows."""
        return 0

    def make(self, old: pa.RecordBatch, moved: Moved) -> pa.RecordBatch:  # noqa: ARG002 - a `Maker`
        """Return rows with their new values.

        Raises ArgumentError, which names the column, where a value cannot be computed.
        """
        arrays = [self._values(column, old) for column in old.schema]
        return pa.RecordBatch.from_arrays(arrays, old.schema.names)

    def _values(self, column: pa.Field[Any], old: pa.RecordBatch) -> pa.Array[Any]:
        expression = self.by_column.get(column.name)
        if expression is None:
            return old.column(column.name)
        try:
            return _encoded(evaluate(expression, old), column.type)
        except (ArgumentError, pa.ArrowInvalid) as error:
            raise _unfit(column.name, str(error)) from error


def _encoded(values: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    """Return values with a dictionary, if the column has one: Arrow casts but text to that."""
    if not isinstance(kind, pa.DictionaryType):
        return values
    encoded = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(kind.index_type), encoded.dictionary)


def _check_column(name: object, text: object, columns: Mapping[str, Field]) -> None:
    if not isinstance(name, str):
        message = f"a column is named by text, not by {name!r}"
        raise TypeError(message)
    if not isinstance(text, str):
        message = f"column {name!r} is to be SQL text, got {type(text).__name__}"
        raise TypeError(message)
    if name in columns:
        return
    if name.partition(".")[0] in columns:
        message = f"{name!r} is part of a column; update the whole of {name.partition('.')[0]!r}"
    else:
        hint = did_you_mean(name, columns) or f"; there are {', '.join(columns)}"
        message = f"there is no column {name!r}{hint}"
    raise ArgumentError(message)


def _typed(expression: Expression, column: Field) -> Expression:
    """Return an expression whose values have the type of a column; literals are cast at once."""
    kind = storage_field(column).type
    wanted = kind.value_type if pa.types.is_dictionary(kind) else kind
    if expression.type == wanted:
        return expression
    try:
        if isinstance(expression, Literal):
            return Literal(_cast_literal(expression.value, wanted))
        cast(pa.array([], expression.type), wanted)
    except (pa.ArrowException, ValueError, TypeError) as error:
        what = f"{expression.type} does not become {wanted}, the column's type: {error}"
        raise _unfit(column.name, what) from error
    return Cast(expression, wanted)


def _cast_literal(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    (found,) = cast(pa.array([value.as_py()], value.type), kind)
    return found


def _unfit(column: str, why: str) -> ArgumentError:
    message = f"column {column!r} cannot be updated: {why}"
    return ArgumentError(message, where=Breadcrumb(column=column))
