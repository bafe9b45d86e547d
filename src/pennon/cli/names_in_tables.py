"""Names that completion offers: columns, versions and indices of a table (`pennon.cli.complete`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pennon.cli.at import open_at
from pennon.ops.versions.branches import branches_of
from pennon.ops.versions.refs import tags_of
from pennon.scan.snapshot import Snapshot
from pennon.schema.project import walk_paths
from pennon.table.indices_wire import parse_indices
from pennon.table.versions import list_locations

_VERSIONS: Final = 20


def opened(given: Mapping[str, Any], options: Mapping[str, str]) -> Snapshot:
    """Open the table that the words of a command name so far."""
    return open_at(given["uri"], given.get("at") or given.get("branch"), options)


def columns_of(snapshot: Snapshot) -> list[str]:
    """Return the paths of all columns, those in structs too."""
    return [path for path, _ in walk_paths(snapshot.manifest.schema) if "," not in path]


def versions_of(snapshot: Snapshot) -> list[str]:
    """Return tags, branches and the newest versions."""
    numbers = sorted((each.version for each in list_locations(snapshot.store)), reverse=True)
    names = [*sorted(tags_of(snapshot)), *sorted(branches_of(snapshot))]
    return [*names, *map(str, numbers[:_VERSIONS])]


def indices_of(snapshot: Snapshot) -> list[str]:
    """Return the names of indices."""
    return sorted({each.name for each in parse_indices(snapshot.manifest.indices)})
