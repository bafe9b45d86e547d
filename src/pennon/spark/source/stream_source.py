"""``spark.readStream.format("lance")``: a table as a stream, see `pennon.scan.changes.stream`.

Spark keeps one reader for a query, in a Python process beside the driver: it asks how far a batch goes, and what tasks
read of it.  A batch is known by its two offsets alone, so one that is run again reads the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql.types import StructType

from pennon.core.cached_property import cached_property
from pennon.errors import ArgumentError
from pennon.ops.versions.refs import hold_versions
from pennon.scan.changes.columns import change_columns
from pennon.scan.changes.stream import (
    NO_LIMITS,
    Position,
    StreamLimits,
    StreamPart,
    StreamRules,
    TableStream,
)
from pennon.scan.changes.version_rows import VersionRows, showing
from pennon.scan.plan.query import parse_predicate
from pennon.scan.read.tasks import plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.field import Schema
from pennon.spark.pyspark_classes import ds
from pennon.spark.source.change_reader import ChangePartition, first_since, read_changes
from pennon.spark.source.options import (
    STREAM_WRITE_KEYS,
    ReadOptions,
    asks_for_changes,
    check_not_of_stream,
    flag,
    known_options,
    moment_of,
    one_of,
    parse_shown_options,
    positive,
)
from pennon.spark.source.partitions import Parallelism, Partition, pack_tasks
from pennon.spark.source.scan_task import TableScan, open_snapshot, plan_table_scan, snapshot_of
from pennon.spark.telemetry import measured_read, note_lag
from pennon.spark.types import SYSTEM_COLUMNS, arrow_schema
from pennon.table.versions import list_locations

MOST_FRAGMENTS: Final = 1000
"""The most fragments of a batch, if no option limits it: as many as Delta's files."""
Offset: TypeAlias = dict[str, Any]
_INITIAL, _BEGAN = "initial", "began"
"""In an offset: it is where a query begins; and where the query began."""


@dataclass(frozen=True)
class RowsPartition(ds.InputPartition):
    """The rows that one task of a stream reads, and how."""

    scan: TableScan
    tasks: Partition


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Options of ``readStream.format("lance")``."""

    table: ReadOptions
    rules: StreamRules
    limits: StreamLimits
    filter: str | None
    given: Mapping[str, str]

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> StreamOptions:
        """Raises ArgumentError for an unknown key, a value that makes no sense, or an option of batches."""
        given = known_options(options)
        check_not_of_stream(given, STREAM_WRITE_KEYS, "writeStream")
        pins = ("version", "versionasof", "tag", "asof", "timestampasof")
        wrong = [
            key for key in (*pins, "endingversion", "endingtimestamp", "netchanges") if key in given
        ]
        if wrong:
            message = (
                f"option {wrong[0]}: a stream does not end at a version, it shows each change, and it begins at "
                "startingVersion or startingTimestamp"
            )
            raise ArgumentError(message)
        rules = StreamRules(
            asks_for_changes(given),
            flag(given, "ignoredeletes"),
            flag(given, "skipchangecommits"),
        )
        limits = StreamLimits(
            positive(given, "maxfilespertrigger"),
            positive(given, "maxrowspertrigger"),
            positive(given, "maxbytespertrigger"),
        )
        if limits == NO_LIMITS:
            limits = StreamLimits(fragments=MOST_FRAGMENTS)
        if rules.shows_changes and "filter" in given:
            message = "option filter is for a stream of rows; filter changes by DataFrame.where"
            raise ArgumentError(message)
        return cls(parse_shown_options(options), rules, limits, given.get("filter"), given)

    def start(self, snapshot: Snapshot) -> Position:
        """Return where a new query begins; ``snapshot`` is the newest version."""
        newest = int(snapshot.manifest.version)
        key, text = one_of(self.given, ("startingversion", "startingtimestamp"))
        if text is None:
            return Position(newest, is_snapshot=True)
        if key == "startingtimestamp":
            return Position(first_since(snapshot, moment_of(key, text)))
        if text == "latest":
            return Position(newest + 1)
        if text == "earliest":
            oldest = list_locations(snapshot.store)[0].version
            return Position(oldest, is_snapshot=oldest > 1)
        if text.strip().isdecimal():
            return Position(positive(self.given, key) or 1)
        tagged = open_snapshot(self.table.uri, self.table.storage_options, text)
        return Position(int(tagged.manifest.version))


class LanceStreamReader(ds.DataSourceStreamReader):
    """Reads a table as a stream; how far a batch goes is said by the classes below it."""

    _held: int | None = None
    """The version that the lease tag names."""

    def __init__(self, options: StreamOptions, schema: StructType) -> None:
        """Open the newest version, whose columns are shown (on the driver)."""
        snapshot = snapshot_of(options.table)
        self._options = options
        self._columns = arrow_schema(schema)
        self._snapshot = snapshot
        self._stream = TableStream(
            snapshot,
            _shown(snapshot, self._columns, options.filter),
            options.rules,
            blobs_as_bytes=True,
        )

    @cached_property
    def _began(self) -> Position:
        """Return where a new query begins, by the table as it was when this was made."""
        return self._options.start(self._snapshot)

    def initialOffset(self) -> Offset:
        """Return where a new query begins."""
        return {**self._began.to_json(), _INITIAL: True}

    def _after(self, start: Offset, newest: int, limits: StreamLimits = NO_LIMITS) -> Offset:
        """Return where a batch ends that begins at an offset; it counts the rows of all batches."""
        at = Position.from_json(start)
        end, amount = self._stream.advance(at, newest, limits)
        note_lag(self._options.table.uri, max(newest + 1 - end.version, 0))
        if end == at:
            return start
        began = at.to_json() if start.get(_INITIAL) else start.get(_BEGAN)
        found = {**end.to_json(), "rows": int(start.get("rows", 0)) + amount.rows}
        return found if began is None else {**found, _BEGAN: began}

    def partitions(self, start: Offset, end: Offset) -> list[ds.InputPartition]:
        """Return what tasks read between two offsets."""
        # Spark does not keep the first offset: a first batch that is run again asks for a new one.
        begin = Position.from_json(end.get(_BEGAN, start) if start.get(_INITIAL) else start)
        self._hold(begin)
        parts = self._stream.parts(begin, Position.from_json(end))
        if self._options.rules.shows_changes:
            most = self._options.table.max_partition_bytes
            return [
                ChangePartition(some)
                for part in parts
                for some in part.change.parts(most, part.fragments)
            ]
        return list(self._partitions_of_rows(parts))

    def _hold(self, begin: Position) -> None:
        """Keep the versions from that of a position on, and the one before it, from clean-ups, if a tag is to do that."""
        tag = self._options.given.get("leasetag")
        version = begin.version if begin.is_snapshot else max(begin.version - 1, 1)
        if tag is not None and version != self._held:
            hold_versions(self._snapshot, tag, (self._options.table.branch, version))
            self._held = version

    def _partitions_of_rows(self, parts: Iterator[StreamPart]) -> Iterator[ds.InputPartition]:
        """Yield what tasks read of appended fragments: neighbours of several versions together."""
        scans: list[tuple[TableScan, list[StreamPart]]] = []
        known: tuple[Schema, Any] | None = None
        for part in parts:
            rows = part.change.after
            shape = rows.columns.read, rows.manifest.base_paths
            if shape != known:
                scans.append((self._scan(rows), []))
                known = shape
            scans[-1][1].append(part)
        most = self._options.table.max_partition_bytes
        for scan, some in scans:
            tasks = [task for part in some for task in _tasks(part)]
            if tasks:
                for packed_tasks in pack_tasks(tasks, most, Parallelism.unknown()):
                    yield RowsPartition(scan, packed_tasks)

    def _scan(self, rows: VersionRows) -> TableScan:
        snapshot = showing(rows.travelling().snapshot, rows.columns.read)
        scan = plan_table_scan(snapshot, self._columns, self._options.table.batch_size)
        return scan if self._options.filter is None else scan.where(self._options.filter)

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition (on an executor)."""
        if isinstance(partition, ChangePartition):
            yield from read_changes(partition, self._columns)
        elif isinstance(partition, RowsPartition):
            for batch in measured_read("stream", partition.scan.read(partition.tasks)):
                if batch.num_rows:
                    yield batch

    def __getstate__(self) -> dict[str, object]:
        """Pickle what tasks need: the columns."""
        return {"_columns": self._columns}


class UnlimitedStreamReader(LanceStreamReader):
    """Gives each batch all that there is: Spark 4.1 tells a source no limits, and not where a batch begins."""

    def latestOffset(self) -> Offset:  # type: ignore[override]  # the way of Spark 4.1
        """Return the end of the table."""
        end = Position(self._stream.newest() + 1)
        return {**end.to_json(), _BEGAN: self._began.to_json()}


def _shown(snapshot: Snapshot, columns: pa.Schema, condition: str | None) -> Schema:
    """Return the fields of the table that are read for the columns of a query, and for its filter."""
    schema = snapshot.manifest.schema
    added = {each.name for each in change_columns()} | set(SYSTEM_COLUMNS)
    tested: list[str] = []
    if condition is not None:
        paths = parse_predicate(snapshot, condition).paths(schema_to_arrow(schema))
        tested = [path[0] for path in paths]
    names = [name for name in dict.fromkeys([*columns.names, *tested]) if name not in added]
    own = {each.name: each for each in schema.fields}
    missing = [name for name in names if name not in own]
    if missing:
        message = f"no column {missing[0]!r}; there are {', '.join(own)}"
        raise ArgumentError(message)
    return replace(schema, fields=tuple(own[name] for name in names))


def _tasks(part: StreamPart) -> list[Any]:
    """Return the tasks that read the living rows of appended fragments."""
    rows = part.change.after
    fragments = tuple(each.after for each in part.fragments if each.after is not None)
    manifest = replace(rows.manifest, fragments=fragments)
    return list(plan_tasks(rows.snapshot.at(manifest)))
