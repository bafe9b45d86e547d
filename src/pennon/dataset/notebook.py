"""HTML of datasets, fragments and scans for notebooks: their ``_repr_html_``."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyarrow import types

from pennon.display.html import MOST_COLUMNS, MOST_ROWS, object_html
from pennon.errors import LanceError
from pennon.scan.facts import table_facts
from pennon.scan.snapshot import Snapshot
from pennon.schema.project import quoted

_MOST_SHOWN_BYTES: Final = 64 * 1024 * 1024
"""First rows of a fragment whose files are larger than that are not read."""


def dataset_html(dataset: Any) -> str:
    """Return a version of a table as HTML: numbers, columns, and the first rows if these are cheap."""
    facts = table_facts(dataset.snapshot, dataset.uri)
    return object_html(
        "LanceDataset", facts, dataset.schema, _first_rows(dataset, dataset.snapshot)
    )


def fragment_html(fragment: Any, snapshot: Snapshot) -> str:
    """Return a fragment as HTML: its rows, files and columns."""
    metadata = fragment.metadata
    files = [file.path for file in metadata.files]
    facts = {
        "fragment": fragment.fragment_id,
        "rows": f"{fragment.count_rows():,}",
        "deleted rows": f"{fragment.num_deletions:,}",
        "files": ", ".join(files),
        "table": snapshot.store.uri,
        "version": snapshot.manifest.version,
    }
    return object_html("LanceFragment", facts, fragment.schema)


def scanner_html(scanner: Any, uri: str) -> str:
    """Return a scan as HTML: its plan and the columns that come out; nothing is read."""
    facts = {"table": uri, "plan": " ← ".join(_steps(scanner))}
    return object_html("LanceScanner", facts, scanner.projected_schema)


def _steps(scanner: Any) -> list[str]:
    lines: list[str] = scanner.explain_plan().splitlines()
    return [line.strip().partition(":")[0] for line in lines if line.strip()]


def _first_rows(dataset: Any, snapshot: Snapshot) -> pa.Table | None:
    """Return the first rows of a table on this machine, without binary values; None if that is not cheap."""
    uri, fragments = snapshot.store.uri, snapshot.manifest.fragments
    if ("://" in uri and not uri.startswith("memory://")) or not fragments:
        return None
    names = [quoted(field.name) for field in dataset.schema if not _has_bytes(field.type)]
    first = sum(file.size_bytes or 0 for file in fragments[0].files)
    if not names or first > _MOST_SHOWN_BYTES:
        return None
    try:
        found: pa.Table = dataset.head(MOST_ROWS, columns=names[:MOST_COLUMNS])
    except (LanceError, OSError, pa.ArrowException):  # a damaged table shows what is known of it
        return None
    return found


def _has_bytes(kind: Any) -> bool:
    """Return whether values of a type may be large: binary ones, and what holds such."""
    if isinstance(kind, pa.BaseExtensionType):
        return _has_bytes(kind.storage_type)
    if types.is_nested(kind):
        return any(_has_bytes(kind.field(number).type) for number in range(kind.num_fields))
    return bool(types.is_binary(kind) or types.is_large_binary(kind))
