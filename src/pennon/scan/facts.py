"""Facts of a version of a table, as ``pennon info``, the page of ``pennon view`` and notebooks show them."""

from __future__ import annotations

from pennon.display.cells import size
from pennon.scan.read.tasks import live_row_counts
from pennon.scan.snapshot import Snapshot
from pennon.table.storage_version import describe_file_versions


def table_facts(snapshot: Snapshot, uri: str, newest: int | None = None) -> dict[str, str]:
    """Return names and texts; ``newest`` is the number of the newest version, if it is to be shown."""
    manifest, counted = snapshot.manifest, snapshot.manifest.summary
    version = f"{manifest.version}"
    return {
        "table": uri,
        **({} if manifest.branch is None else {"branch": manifest.branch}),
        "version": version if newest is None else f"{version} (newest: {newest})",
        "file version": describe_file_versions(manifest),
        "rows": f"{sum(live_row_counts(snapshot)):,}",
        "fragments": f"{counted.fragments:,}",
        "data files": f"{counted.files:,}",
        "size": size(counted.size_bytes),
        "deleted rows": f"{counted.deleted_rows:,}",
    }
