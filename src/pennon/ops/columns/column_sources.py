"""Sources of new columns: SQL expressions, a function of batches, or rows in the table's order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.types import is_dictionary

from pennon.errors import ArgumentError, Breadcrumb, SchemaMismatchError
from pennon.expr.evaluate import evaluate
from pennon.expr.nullable import may_be_null
from pennon.expr.parse import parse_column
from pennon.expr.tree import Cast, Column, Expression, Literal
from pennon.file.container.input_check import InputCheck
from pennon.ops.columns.task import Place
from pennon.scan.projection import Projection
from pennon.scan.read.compute import Computed
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.blob import described_v2
from pennon.schema.field import Schema
from pennon.schema.version import V0_1, FileVersion

R = TypeVar("R")

NO_COLUMNS: Final = Projection(Schema(()), ())


@dataclass(frozen=True, slots=True)
class SqlColumns:
    """Columns that are computed by expressions; ``schema`` is what comes out."""

    computed: Computed
    schema: pa.Schema
    in_order: bool = field(default=False, init=False)

    @classmethod
    def parse(cls, texts: Mapping[str, str], table: Schema, version: FileVersion) -> SqlColumns:
        """Return the columns of SQL texts; raises ArgumentError that names the column.

        A column alone stays a dictionary where files of that version may get one.  Blobs of version 2
        are their descriptions.
        """
        table = described_v2(table)
        arrow = schema_to_arrow(table)
        expressions = {
            name: _of(name, partial(parse_column, text, arrow)) for name, text in texts.items()
        }
        fields = [
            pa.field(name, _new_type(each, arrow, version), nullable=may_be_null(each, arrow))
            for name, each in expressions.items()
        ]
        return cls(Computed.of(expressions, table), pa.schema(fields))

    @property
    def inputs(self) -> Projection:
        """Return the columns that the expressions name."""
        return self.computed.inputs

    @property
    def is_null(self) -> bool:
        """Tell whether all that comes out is NULL."""
        return all(map(_is_null, self.computed.expressions.values()))

    def make(self, batch: pa.RecordBatch, _: Place) -> pa.RecordBatch:
        """Evaluate the expressions; raises ArgumentError that names the column."""
        expressions = self.computed.expressions
        columns = [
            _stored(each, batch)
            if isinstance(each, Column) and is_dictionary(self.schema.field(name).type)
            else _of(name, partial(evaluate, each, batch))
            for name, each in expressions.items()
        ]
        return pa.RecordBatch.from_arrays(columns, names=list(expressions))


def _new_type(node: Expression, table: pa.Schema, version: FileVersion) -> pa.DataType:
    """Return the type of a new column: that of its expression, or of the dictionary that it copies."""
    if isinstance(node, Column) and version != V0_1:
        stored: pa.DataType = table.field(node.path[0]).type
        for name in node.path[1:]:
            stored = stored.field(name).type
        if is_dictionary(stored):
            return stored
    return node.type


def _stored(node: Column, batch: pa.RecordBatch) -> pa.Array:
    """Return the values of a column as they are stored."""
    found = batch.column(node.path[0])
    for name in node.path[1:]:
        found = pc.struct_field(found, [name])
    return found


def _of(name: str, get: Callable[[], R]) -> R:
    """Return what is got for a column; its name is added to errors."""
    try:
        return get()
    except ArgumentError as error:
        raise error.located(Breadcrumb(column=name)) from error.__cause__


def _is_null(node: Expression) -> bool:
    if isinstance(node, Cast):
        return _is_null(node.operand)
    return isinstance(node, Literal) and not node.value.is_valid


@dataclass(frozen=True, slots=True)
class FunctionColumns:
    """Columns that a function returns for batches; calls do not overlap."""

    function: Callable[[pa.RecordBatch], pa.RecordBatch]
    inputs: Projection
    in_order: bool = field(default=True, init=False)

    def make(self, batch: pa.RecordBatch, _: Place) -> pa.RecordBatch:
        """Call the function.  Raises ArgumentError for arrays that are not valid."""
        made = self.function(batch)
        if isinstance(made, pa.RecordBatch):
            InputCheck().check(made)
        return made


def as_batch(result: Any) -> pa.RecordBatch:
    """Return what a function returned as a batch; raises SchemaMismatchError if it is none."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(result, pandas.DataFrame):
        result = pa.RecordBatch.from_pandas(result)
    if not isinstance(result, pa.RecordBatch):
        message = f"the function must return a RecordBatch, but returned {type(result).__name__}"
        raise SchemaMismatchError(message)
    return result


def as_announced(result: Any, schema: pa.Schema) -> pa.RecordBatch:
    """Return what a function returned as a batch; raises SchemaMismatchError for another schema."""
    found = as_batch(result)
    if found.schema != schema:
        message = (
            "Output schema of function does not match the expected schema. "
            f"Expected: {_listed(schema)}; got: {_listed(found.schema)}"
        )
        raise SchemaMismatchError(message)
    return found


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


class FollowingRows:
    """Columns that a reader has, row by row in the order of the table's live rows.

    This does not pickle: who has the reader writes all fragments.
    """

    in_order: Final = True
    inputs: Final = NO_COLUMNS

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        """Take the reader; nothing is read yet."""
        self._batches: Iterator[pa.RecordBatch] = iter(reader)
        self._schema = reader.schema
        self._left = pa.RecordBatch.from_pylist([], schema=reader.schema)

    def make(self, batch: pa.RecordBatch, _: Place) -> pa.RecordBatch:
        """Return as many rows as the batch has; raises SchemaMismatchError if there are too few."""
        missing, pieces = batch.num_rows, []
        while missing:
            if not self._left.num_rows:
                self._left = self._next()
            pieces.append(self._left.slice(0, missing))
            self._left = self._left.slice(pieces[-1].num_rows)
            missing -= pieces[-1].num_rows
        return _one(pieces, self._schema)

    def _next(self) -> pa.RecordBatch:
        found = next(self._batches, None)
        if found is None:
            message = "Stream ended before producing values for all rows in dataset"
            raise SchemaMismatchError(message)
        return found

    def check_end(self) -> None:
        """Raise SchemaMismatchError if rows are left."""
        if self._left.num_rows or any(batch.num_rows for batch in self._batches):
            message = "Stream produced more values than expected for dataset"
            raise SchemaMismatchError(message)


def _one(pieces: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(pieces) == 1:
        return pieces[0]
    whole: Any = (
        pa.concat_batches(pieces) if pieces else pa.RecordBatch.from_pylist([], schema=schema)
    )
    return whole
