"""The versions of a table, as the dicts that pylance shows."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from pennon.io.store import Store
from pennon.table.manifest import Manifest
from pennon.table.versions import list_versions


class Version(TypedDict):
    """One version: its number, its local time, and a summary of its manifest as text."""

    version: int
    timestamp: datetime
    metadata: dict[str, str]


class VersionRef(TypedDict):
    """The number of a version."""

    version: int


def describe(manifest: Manifest) -> Version:
    """Return one version as pylance shows it; the time is local and has no zone."""
    fragments = manifest.fragments
    files = [file for fragment in fragments for file in fragment.files]
    summary = {
        "total_data_file_rows": sum(fragment.physical_rows or 0 for fragment in fragments),
        "total_data_files": len(files),
        "total_deletion_file_rows": sum(fragment.num_deleted_rows or 0 for fragment in fragments),
        "total_deletion_files": sum(fragment.deletion_file is not None for fragment in fragments),
        "total_files_size": sum(file.size_bytes or 0 for file in files),
        "total_fragments": len(fragments),
        "total_rows": sum(fragment.num_rows or 0 for fragment in fragments),
    }
    return Version(
        version=manifest.version,
        timestamp=manifest.timestamp.astimezone().replace(tzinfo=None),
        metadata={name: str(value) for name, value in summary.items()},
    )


def read_history(store: Store) -> list[Version]:
    """Return all versions, oldest first."""
    return [describe(info.manifest) for info in list_versions(store)]
