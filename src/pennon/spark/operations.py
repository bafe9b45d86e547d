"""Converting a table by Spark: a task for each fragment, one commit on the driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.io import open_store
from pennon.ops.convert import ConvertTask, commit_convert, plan_convert
from pennon.schema.version import FileVersion
from pennon.spark.write_task import parse_fragments, serialize_fragments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class ConvertFragments:
    """``mapInArrow`` function: numbers of fragments in, numbers and what became of them out."""

    task: ConvertTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rewrite the fragments named by the incoming batches."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                message = serialize_fragments(self.task.run(number))
                yield pa.RecordBatch.from_pydict({"number": [number], "fragments": [message]})


def convert(
    spark: SparkSession,
    uri: str,
    to: str,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Rewrite a table's data files in the file version ``to``, and return the version made.

    The rows and their order stay; deleted rows are gone, older versions are not.  Fails if anybody
    else commits meanwhile.
    """
    store = open_store(uri, dict(storage_options or {}) or None)
    task = plan_convert(store, FileVersion.parse(to))
    if not task.count:
        return commit_convert(task, []).version
    numbers = spark.range(0, task.count, 1, task.count)
    rows = numbers.mapInArrow(ConvertFragments(task), "number long, fragments string").collect()
    found = {row.number: parse_fragments(row.fragments) for row in rows}
    return commit_convert(task, (found[number] for number in range(task.count))).version
