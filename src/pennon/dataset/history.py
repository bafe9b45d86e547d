"""The versions of a table, as the dicts that pylance shows."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from pennon.io.store import Store
from pennon.table.manifest import Summary
from pennon.table.versions import list_versions


class Version(TypedDict):
    """One version: its number, its local time, and a summary of its manifest as text."""

    version: int
    timestamp: datetime
    metadata: dict[str, str]


class VersionRef(TypedDict):
    """The number of a version."""

    version: int


def describe(summary: Summary) -> Version:
    """Return one version as pylance shows it; the time is local and has no zone."""
    numbers = {
        "total_data_file_rows": summary.physical_rows,
        "total_data_files": summary.files,
        "total_deletion_file_rows": summary.deleted_rows,
        "total_deletion_files": summary.deletion_files,
        "total_files_size": summary.size_bytes,
        "total_fragments": summary.fragments,
        "total_rows": summary.physical_rows - summary.deleted_rows,
    }
    return Version(
        version=summary.version,
        timestamp=summary.timestamp.astimezone().replace(tzinfo=None),
        metadata={name: str(value) for name, value in numbers.items()},
    )


def read_history(store: Store) -> list[Version]:
    """Return all versions, oldest first."""
    return [describe(summary) for summary in list_versions(store)]
