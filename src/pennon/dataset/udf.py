"""Functions that make new columns, batch by batch (``lance.udf``)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from pennon.errors import ArgumentError, SchemaMismatchError
from pennon.ops.columns.checkpoint import Checkpoint


class BatchUDF:
    """A function from a batch to a batch of new columns, for `LanceDataset.add_columns`.

    `batch_udf` makes one as a decorator.  It may be called like the function itself.
    """

    def __init__(
        self,
        func: Callable[[pa.RecordBatch], Any],
        output_schema: pa.Schema | None = None,
        checkpoint_file: str | Path | None = None,
    ) -> None:
        """Take the function; without a schema, that of its first result is expected of all."""
        self.func = func
        self.output_schema = output_schema
        self.cache: Checkpoint | None = None
        if checkpoint_file is not None:
            self.cache = Checkpoint(checkpoint_file)
            self.cache.prepare()

    def __call__(self, batch: pa.RecordBatch) -> Any:
        """Call the function; what it returns is not checked."""
        return self.func(batch)

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Call the function.  Raises SchemaMismatchError if the result is of another schema."""
        if self.output_schema is None:
            message = "output_schema must be provided, or found with a first batch"
            raise ArgumentError(message)
        found = as_batch(self.func(batch))
        if found.schema != self.output_schema:
            message = (
                "Output schema of function does not match the expected schema. "
                f"Expected: {_listed(self.output_schema)}; got: {_listed(found.schema)}"
            )
            raise SchemaMismatchError(message)
        return found

    _call = run


def batch_udf(
    output_schema: pa.Schema | None = None, checkpoint_file: str | Path | None = None
) -> Callable[[Callable[[pa.RecordBatch], Any]], BatchUDF]:
    """Return a decorator that makes a `BatchUDF` of a function.

    ``output_schema``: what the function returns; otherwise the schema of its first result.
    ``checkpoint_file``: where results are kept until all are committed.  After a crash, call
    `LanceDataset.add_columns` with the same file, and the function is called for what is missing.
    """

    def wrap(func: Callable[[pa.RecordBatch], Any]) -> BatchUDF:
        return BatchUDF(func, output_schema, checkpoint_file)

    return wrap


def as_batch(result: Any) -> pa.RecordBatch:
    """Return what a function returned as a batch; raises SchemaMismatchError if it is none."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(result, pandas.DataFrame):
        result = pa.RecordBatch.from_pandas(result)
    if not isinstance(result, pa.RecordBatch):
        message = f"the function must return a RecordBatch, but returned {type(result).__name__}"
        raise SchemaMismatchError(message)
    return result


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
