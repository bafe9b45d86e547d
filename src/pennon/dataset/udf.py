"""Functions that make new columns, batch by batch (``lance.udf``)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from pennon.errors import ArgumentError
from pennon.ops.columns.checkpoint import Checkpoint
from pennon.ops.columns.column_sources import as_announced
from pennon.ops.columns.column_sources import as_batch as as_batch


class BatchUDF:
    """A function from a batch to a batch of new columns, for `LanceDataset.add_columns`.

    `batch_udf` makes one as a decorator.  It may be called like the function itself.

    >>> from pennon.dataset import BatchUDF
    >>> same = BatchUDF(lambda rows: rows.rename_columns(["copy"]))
    >>> same(pa.record_batch({"id": [1, 2]})).to_pydict()
    {'copy': [1, 2]}
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
        return as_announced(self.func(batch), self.output_schema)

    _call = run


def batch_udf(
    output_schema: pa.Schema | None = None, checkpoint_file: str | Path | None = None
) -> Callable[[Callable[[pa.RecordBatch], Any]], BatchUDF]:
    """Return a decorator that makes a `BatchUDF` of a function.

    ``output_schema``: what the function returns; otherwise the schema of its first result.
    ``checkpoint_file``: where results are kept until all are committed.  After a crash, call
    `LanceDataset.add_columns` with the same file, and the function is called for what is missing.

    >>> import pyarrow.compute as pc
    >>> @pennon.batch_udf()
    ... def twice(rows):
    ...     return pa.record_batch({"twice": pc.multiply(rows["id"], 2)})
    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds.add_columns(twice, read_columns=["id"])
    >>> ds.to_table()["twice"].to_pylist()
    [2, 4, 6]
    """

    def wrap(func: Callable[[pa.RecordBatch], Any]) -> BatchUDF:
        return BatchUDF(func, output_schema, checkpoint_file)

    return wrap
