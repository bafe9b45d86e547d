"""Names of ``lance.lance``, pylance's native module, as other programs use them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pennon.as_lance.modules import PYLANCE_RELEASE
from pennon.names import HOMES, lazy_names
from pennon.schema.json_schema import json_to_schema, schema_to_json

if TYPE_CHECKING:
    from pennon.dataset.lance_dataset import LanceDataset

__version__ = PYLANCE_RELEASE

_HOMES: Final = {
    **HOMES,
    "BFloat16": "pennon.arrow.bfloat16",
    "Bitmap": "pennon.bitmap",
    "CompactionPlan": "pennon.dataset.compaction",
    "CompactionTask": "pennon.dataset.compaction",
    "DeletionFile": "pennon.dataset.metadata",
    "IndexSegmentDescription": "pennon.dataset.index_descriptions",
    "MetricDescription": "pennon.as_lance.telemetry",
    "MetricPoint": "pennon.as_lance.telemetry",
    "RewriteResult": "pennon.dataset.compaction",
    "RowDatasetVersionMeta": "pennon.dataset.metadata",
    "RowIdMeta": "pennon.dataset.metadata",
    "RowIdSequence": "pennon.dataset.row_id_sequence",
    "TraceEvent": "pennon.as_lance.tracing",
    "bfloat16_array": "pennon.arrow.bfloat16",
    "capture_trace_events": "pennon.as_lance.tracing",
    "format_fragment": "pennon.debug",
    "format_manifest": "pennon.debug",
    "format_schema": "pennon.debug",
    "lance_metrics_catalog": "pennon.as_lance.telemetry",
    "list_transactions": "pennon.debug",
    "register_lance_metrics_recorder": "pennon.as_lance.telemetry",
    "shutdown_tracing": "pennon.as_lance.tracing",
    "snapshot_lance_metrics": "pennon.as_lance.telemetry",
    "trace_to_chrome": "pennon.as_lance.tracing",
}
_lazy = lazy_names("lance.lance", _HOMES.keys(), _HOMES)
_OTHER_NAMES: Final = {
    "LanceBlobFile": "BlobFile",
    "_Session": "Session",
    "_Dataset": "LanceDataset",
}
"""Native classes, and the classes of ours that have their methods."""


def __getattr__(name: str) -> Any:
    return _lazy(_OTHER_NAMES.get(name, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_OTHER_NAMES})


def _schema_to_json(schema: pa.Schema) -> str:
    """Return an Arrow schema as JSON text."""
    return json.dumps(schema_to_json(schema))


def _json_to_schema(text: str) -> pa.Schema:
    """Return the Arrow schema of JSON text."""
    return json_to_schema(json.loads(text))


def manifest_needs_migration(dataset: LanceDataset) -> bool:
    """Say whether fragments of a table do not know how many rows they have, as in tables of Lance 0.7 and before."""
    fragments = dataset.snapshot.manifest.fragments
    return any(fragment.physical_rows is None for fragment in fragments)
