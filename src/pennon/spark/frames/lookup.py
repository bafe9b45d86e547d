"""A few rows by their ids: read on the driver, handed to Spark as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Final, SupportsIndex

import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import ArgumentError
from pennon.scan.read.tasks import plan_tasks
from pennon.spark.frames.scan import local_frame
from pennon.spark.source.data_source import shown_schema
from pennon.spark.source.options import ReadOptions
from pennon.spark.source.scan_task import arrow_schema_of, plan_table_scan
from pennon.spark.types import SYSTEM_COLUMNS, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot

_MOST: Final = 1_000_000
"""Rows that the driver holds; more are a join with ``with_row_id``."""


def taken_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    rows: Iterable[SupportsIndex],
    columns: Sequence[str] | None,
    by: str,
) -> DataFrame:
    """Return the rows whose row id, or address, is given, in the order asked.

    Raises ArgumentError for too many, for what is no number, and for a column that is not there.
    """
    if by not in SYSTEM_COLUMNS:
        message = f"rows are taken by {' or '.join(SYSTEM_COLUMNS)}, not by {by!r}"
        raise ArgumentError(message)
    numbers = _numbers(rows)
    named = None if columns is None else tuple(columns)
    shown = shown_schema(arrow_schema_of(snapshot), ReadOptions(snapshot.store.uri, columns=named))
    wanted = arrow_schema(shown)
    scan = plan_table_scan(snapshot, wanted.append(pa.field(by, pa.int64())), None)
    if numbers:
        scan = scan.where(f"{by} IN ({', '.join(map(str, dict.fromkeys(numbers)))})")
    found = pa.Table.from_batches(scan.read(plan_tasks(snapshot)) if numbers else [], scan.schema)
    places = pc.index_in(pa.array(numbers, pa.int64()), value_set=found.column(by).combine_chunks())
    ordered = found.take(places.drop_null()).select(wanted.names)
    return local_frame(spark, ordered, shown)


def _numbers(rows: Iterable[SupportsIndex]) -> list[int]:
    """Return row ids as Python's numbers; those of numpy and pandas are such, too."""
    found = []
    for each in rows:
        number = index(each) if isinstance(each, SupportsIndex) else -1
        if isinstance(each, bool) or not 0 <= number < 1 << 63:
            message = f"rows are named by whole numbers from 0 to 2**63 - 1, not by {each!r}"
            raise ArgumentError(message)
        found.append(number)
    if len(found) > _MOST:
        message = (
            f"{len(found)} rows are too many for the driver, which takes {_MOST}; join with "
            "read(with_row_id=True)"
        )
        raise ArgumentError(message)
    return found
