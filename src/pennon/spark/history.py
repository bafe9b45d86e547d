"""The history of a table: Delta's names for operations, their parameters and metrics.

Operations on Spark put them into the properties of their transaction; of other writers the transaction
itself says what it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import types as st

from pennon.errors import FormatError, NotFoundError
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import (
    Append,
    Clone,
    Delete,
    Merge,
    Overwrite,
    Project,
    Restore,
    Rewrite,
    Update,
    operation_name,
)
from pennon.table.transaction import AppVersion, Transaction
from pennon.table.transaction_wire import find_transaction
from pennon.table.versions import list_locations, read_manifest_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPERATION: Final = "pennon.operation"
_PARAMETERS: Final = "pennon.operationParameters"
_METRICS: Final = "pennon.operationMetrics"
_TEXTS: Final = st.MapType(st.StringType(), st.StringType())
HISTORY: Final = st.StructType(
    [
        st.StructField("version", st.LongType()),
        st.StructField("timestamp", st.TimestampType()),
        st.StructField("userId", st.StringType()),
        st.StructField("userName", st.StringType()),
        st.StructField("operation", st.StringType()),
        st.StructField("operationParameters", _TEXTS),
        st.StructField("readVersion", st.LongType()),
        st.StructField("isolationLevel", st.StringType()),
        st.StructField("isBlindAppend", st.BooleanType()),
        st.StructField("operationMetrics", _TEXTS),
        st.StructField("userMetadata", st.StringType()),
        st.StructField("engineInfo", st.StringType()),
    ]
)
_NAMES: Final = {
    Append: "WRITE",
    Overwrite: "WRITE",
    Delete: "DELETE",
    Update: "UPDATE",
    Rewrite: "OPTIMIZE",
    Restore: "RESTORE",
    Clone: "CLONE",
    Merge: "ADD COLUMNS",
    Project: "CHANGE COLUMNS",
}


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """The history entry of an operation, in Delta's words."""

    operation: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)
    app: AppVersion | None = None
    """The application whose batch the operation is."""

    def properties(self) -> dict[str, str]:
        """Return it as properties of a transaction."""
        metrics = {name: str(value) for name, value in self.metrics.items()}
        return {
            **({} if self.app is None else self.app.properties()),
            _OPERATION: self.operation,
            _PARAMETERS: json.dumps(dict(self.parameters)),
            _METRICS: json.dumps(metrics),
        }


def history_frame(spark: SparkSession, snapshot: Snapshot, limit: int | None) -> DataFrame:
    """Return the versions of a table, newest first, and what made each."""
    rows = list(islice(history_lines(snapshot), limit))
    return spark.createDataFrame(rows, HISTORY)


def history_lines(snapshot: Snapshot) -> Iterator[tuple[Any, ...]]:
    """Yield the versions of a table, newest first, as rows of `HISTORY`."""
    store = snapshot.store
    for location in sorted(list_locations(store), key=lambda each: -each.version):
        manifest = read_manifest_at(store, location)
        try:
            made = find_transaction(store, manifest)
        except (FormatError, NotFoundError):
            made = None
        yield _line(manifest, made)


def _line(manifest: Manifest, made: Transaction | None) -> tuple[Any, ...]:
    name, parameters, metrics = _said(manifest, made)
    writer = manifest.writer
    return (
        manifest.version,
        manifest.timestamp.astimezone(UTC),
        None,
        None,
        name,
        parameters,
        None if made is None else made.read_version,
        "Serializable",
        made is not None and isinstance(made.operation, Append),
        metrics,
        None,
        None if writer is None else f"{writer.library} {writer.version}",
    )


def _said(
    manifest: Manifest, made: Transaction | None
) -> tuple[str | None, dict[str, str], dict[str, str]]:
    """Return name, parameters and metrics: those that the writer put down, else what can be told."""
    if made is None:
        return None, {}, {}
    known = made.properties
    if _OPERATION in known:
        texts = (known.get(_PARAMETERS, "{}"), known.get(_METRICS, "{}"))
        parameters, metrics = (_texts(text) for text in texts)
        return known[_OPERATION], parameters, metrics
    operation = made.operation
    name = _NAMES.get(type(operation), (operation_name(operation) or "unknown").upper())
    if isinstance(operation, Append | Overwrite):
        mode = "Append" if isinstance(operation, Append) or manifest.version == 1 else "Overwrite"
        return name, {"mode": mode}, _written(operation)
    if isinstance(operation, Delete):
        return name, {"predicate": operation.predicate}, {}
    if isinstance(operation, Restore):
        return name, {"version": str(operation.version)}, {}
    return name, {}, {}


def _written(operation: Append | Overwrite) -> dict[str, str]:
    numbers = written_metrics(operation.fragments)
    return {key: str(value) for key, value in numbers.items()}


def written_metrics(fragments: Sequence[Fragment]) -> dict[str, int]:
    """Return Delta's metrics of new fragments."""
    files = [file for fragment in fragments for file in fragment.files]
    rows = sum(fragment.physical_rows or 0 for fragment in fragments)
    size_bytes = sum(file.size_bytes or 0 for file in files)
    return {"numFiles": len(files), "numOutputRows": rows, "numOutputBytes": size_bytes}


def _texts(text: str) -> dict[str, str]:
    """Return a map of texts; empty for what another program put there."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
