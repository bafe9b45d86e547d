"""``spark.read.format("lance").option("readChangeFeed", "true")``: the changes of some versions as rows.

The driver compares the versions, by their manifests alone; a task reads the rows of some fragments that differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from pyspark.sql.types import StructType

from pennon.errors import ArgumentError, NotFoundError
from pennon.scan.changes.columns import change_columns
from pennon.scan.changes.feed import ChangeFeed, VersionChange
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Schema
from pennon.spark.arrow_convert import convert_batch
from pennon.spark.pyspark_classes import ds
from pennon.spark.source.options import DEFAULT_PARTITION_BYTES, ChangeRange, ReadOptions
from pennon.spark.source.scan_task import snapshot_of
from pennon.spark.types import arrow_schema
from pennon.table.versions import list_versions, version_as_of


@dataclass(frozen=True)
class ChangePartition(ds.InputPartition):
    """The changes that one task reads: of one version, and some of its fragments."""

    version: VersionChange

    @property
    def most_rows(self) -> int:
        """Return how many rows the fragments have, before and behind the version."""
        sides = [side for each in self.version.fragments for side in each.sides]
        return sum(side.physical_rows or 0 for side in sides)


def read_changes(partition: ChangePartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the changes of one partition, in Spark's types."""
    for batch in partition.version.batches():
        yield convert_batch(batch, schema)


def plan_changes(
    snapshot: Snapshot,
    columns: Sequence[str],
    versions: tuple[int, int],
    max_partition_bytes: int = DEFAULT_PARTITION_BYTES,
    *,
    net: bool = False,
) -> list[ChangePartition]:
    """Return what tasks read of the changes after one version, up to another; columns of changes are passed over.

    ``net``: see `pennon.scan.changes.feed.ChangeFeed`.

    Raises ArgumentError for a column that the table does not have, NotFoundError for a version that is not there.
    """
    schema = snapshot.manifest.schema
    own = {each.name: each for each in schema.fields}
    added = {each.name for each in change_columns()}
    names = [name for name in columns if name not in added]
    missing = [name for name in names if name not in own]
    if missing:
        message = f"no column {missing[0]!r}; there are {', '.join(own)}"
        raise ArgumentError(message)
    shown = Schema(tuple(own[name] for name in names), schema.metadata)
    feed = ChangeFeed(snapshot, *versions, shown, blobs_as_bytes=True, net=net)
    return [
        ChangePartition(part)
        for version in feed.versions()
        for part in version.parts(max_partition_bytes)
    ]


class ChangeReader(ds.DataSourceReader):
    """Reads the changes of some versions; its partitions are fragments that differ."""

    def __init__(self, schema: pa.Schema, partitions: Sequence[ChangePartition]) -> None:
        self._schema = schema
        self._partitions = partitions

    @classmethod
    def of(cls, options: ReadOptions, changes: ChangeRange, schema: StructType) -> ChangeReader:
        """Compare the versions (on the driver)."""
        snapshot = snapshot_of(options)
        columns = arrow_schema(schema)
        first, last = version_range(snapshot, changes)
        partitions = plan_changes(
            snapshot,
            columns.names,
            (first - 1, last),
            options.max_partition_bytes,
            net=changes.net,
        )
        return cls(columns, partitions)

    def partitions(self) -> list[ds.InputPartition]:
        """Return the partitions."""
        return list(self._partitions)

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the changes of one partition (on an executor)."""
        if isinstance(partition, ChangePartition):
            yield from read_changes(partition, self._schema)

    def __getstate__(self) -> dict[str, object]:
        """Pickle without the partitions: each travels by itself."""
        return {**self.__dict__, "_partitions": []}


def version_range(snapshot: Snapshot, changes: ChangeRange) -> tuple[int, int]:
    """Return the first and the last version of a feed.

    A time is that of the commit: the feed begins with the first version at or after it, and ends with the last one at
    or before it.  Raises ArgumentError for an end before the beginning, NotFoundError if nothing was committed since.
    """
    first, last = changes.first, changes.last
    newest = int(snapshot.manifest.version)
    if isinstance(first, datetime):
        first = first_since(snapshot, first)
    if isinstance(last, datetime):
        last = version_as_of(snapshot.store, last)
    last = newest if last is None else int(last)
    if last > newest:
        message = f"endingVersion {last} is beyond the newest version, {newest}"
        raise ArgumentError(message)
    if first > last:
        message = f"a change feed from version {first} to {last}: the end lies before the beginning"
        raise ArgumentError(message)
    return first, last


def first_since(snapshot: Snapshot, when: datetime) -> int:
    """Return the first version that was committed at or after a time; raises NotFoundError if there is none."""
    known = [each.version for each in list_versions(snapshot.store) if each.timestamp >= when]
    if not known:
        message = f"no version was committed at or after {when.isoformat()}"
        raise NotFoundError(message)
    return min(known)
