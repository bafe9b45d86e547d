"""A DataFrame of the changes between two versions: what tasks read goes to them through ``mapInArrow``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.spark.frames.scan import numbers_up_to
from pennon.spark.source.change_reader import ChangePartition, plan_changes, read_changes
from pennon.spark.source.data_source import shown_schema
from pennon.spark.source.options import ChangeRange, ReadOptions
from pennon.spark.source.scan_task import arrow_schema_of
from pennon.spark.types import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ReadChanges:
    """``mapInArrow`` function of a change feed: each incoming row is the number of a partition."""

    schema: pa.Schema
    partitions: tuple[ChangePartition, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the partitions named by the incoming batches."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_changes(self.partitions[number], self.schema)


def change_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    versions: tuple[int, int],
    columns: Sequence[str] | None,
    *,
    net: bool,
) -> DataFrame:
    """Return the changes after one version, up to another, with some columns, or all; or the ``net`` changes."""
    chosen = None if columns is None else tuple(columns)
    options = ReadOptions(snapshot.store.uri, columns=chosen, changes=ChangeRange(*versions))
    schema = shown_schema(arrow_schema_of(snapshot), options)
    partitions = tuple(plan_changes(snapshot, schema.names, versions, net=net))
    if not partitions:
        return spark.createDataFrame([], schema)
    numbers = numbers_up_to(spark, len(partitions), sum(each.most_rows for each in partitions))
    return numbers.mapInArrow(ReadChanges(arrow_schema(schema), partitions), schema)
