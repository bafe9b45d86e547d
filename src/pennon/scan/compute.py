"""What a scan does to the batches that it read: conditions, and columns that are computed.

The columns that either needs are read beside those that are shown, under marked names: the shown
ones may have other names than those in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pennon.encoding.selection import keep_rows
from pennon.expr.evaluate import evaluate
from pennon.expr.tree import Expression, names_of
from pennon.scan.filter import Predicate
from pennon.scan.projection import Projection

_MARK: Final = "\0"


@dataclass(frozen=True, slots=True)
class Computation:
    """A condition, expressions that become columns, and the order of all columns that are shown."""

    predicate: Predicate | None = None
    expressions: Mapping[str, Expression] = field(default_factory=dict)
    order: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there is anything to do."""
        return self.predicate is not None or bool(self.expressions)

    def needed(self, table: pa.Schema) -> dict[str, str]:
        """Return the columns that must be read for it, by the names that `run` looks for."""
        names = list(self.predicate.columns(table)) if self.predicate is not None else []
        for expression in self.expressions.values():
            names += names_of(expression)
        return {_MARK + name: name for name in names}

    def shown(self, read: Projection) -> pa.Schema:
        """Return the schema of what comes out, given the columns that come out as they were read."""
        if not self.expressions:
            return read.arrow
        plain = {column.arrow.name: column.arrow for column in read.columns}
        computed = {name: pa.field(name, each.type) for name, each in self.expressions.items()}
        rest = [name for name in plain if name not in self.order]
        fields = [(plain | computed)[name] for name in (*self.order, *rest)]
        return pa.schema(fields, read.arrow.metadata)

    def run(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield what passes of each batch, with the columns of ``schema``; no empty batches."""
        for batch in batches:
            needed = [name for name in batch.schema.names if name.startswith(_MARK)]
            inputs = batch.select(needed).rename_columns([name[1:] for name in needed])
            if self.predicate is not None:
                mask = self.predicate.test(inputs)
                inputs, batch = keep_rows(inputs, mask), keep_rows(batch, mask)  # noqa: PLW2901
            if batch.num_rows:
                yield self._assemble(batch, inputs, schema)

    def _assemble(
        self, batch: pa.RecordBatch, inputs: pa.RecordBatch, schema: pa.Schema
    ) -> pa.RecordBatch:
        if not self.expressions:
            return batch.select(schema.names).replace_schema_metadata(schema.metadata)
        arrays = [
            evaluate(self.expressions[name], inputs)
            if name in self.expressions
            else batch.column(name)
            for name in schema.names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
