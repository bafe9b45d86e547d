"""The parts of a table as rows: versions, fragments, data files, indices, history.

Each listing is a function of a version of the table, and the schema of its rows as Spark's DDL.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from typing import Any, Final, TypeAlias

from pennon.scan.read.tasks import live_row_count
from pennon.scan.snapshot import Snapshot
from pennon.schema.project import walk_paths
from pennon.schema.version import FileVersion
from pennon.spark.history import HISTORY, history_lines
from pennon.table.indices_wire import kind_of, parse_indices
from pennon.table.versions import list_versions

Row: TypeAlias = tuple[Any, ...]

VERSION_SCHEMA: Final = (
    "version bigint, timestamp timestamp, fragments bigint, files bigint, size_bytes bigint, "
    "deletion_files bigint, physical_rows bigint, deleted_rows bigint"
)
FRAGMENT_SCHEMA: Final = (
    "fragment_id bigint, rows bigint, physical_rows bigint, deletion_file string, files int, "
    "size_bytes bigint"
)
FILE_SCHEMA: Final = (
    "fragment_id bigint, path string, file_version string, size_bytes bigint, fields array<string>"
)
INDEX_SCHEMA: Final = (
    "name string, kind string, fields array<string>, uuid string, dataset_version bigint, "
    "fragments bigint, created_at timestamp"
)
HISTORY_SCHEMA: Final = ", ".join(
    f"{field.name} {field.dataType.simpleString()}" for field in HISTORY
)


def version_rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield the versions, oldest first."""
    for each in list_versions(snapshot.store):
        yield (
            each.version,
            each.timestamp.astimezone(UTC),
            each.fragments,
            each.files,
            each.size_bytes,
            each.deletion_files,
            each.physical_rows,
            each.deleted_rows,
        )


def fragment_rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield the fragments of a version, in their order."""
    for each in snapshot.manifest.fragments:
        deletion = each.deletion_file
        yield (
            each.id,
            live_row_count(snapshot, each),
            each.physical_rows,
            None if deletion is None else deletion.store_path(each.id),
            len(each.files),
            sum(file.size_bytes or 0 for file in each.files),
        )


def file_rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield the data files of a version, and the fields whose values they hold."""
    names = _field_names(snapshot)
    for fragment in snapshot.manifest.fragments:
        for file in fragment.files:
            version = FileVersion.from_numbers(file.major, file.minor)
            fields = [names[number] for number in file.field_ids if number in names]
            yield (fragment.id, file.store_path, str(version), file.size_bytes, fields)


def index_rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield the indices of a version, segment by segment."""
    names = _field_names(snapshot)
    for index in parse_indices(snapshot.manifest.indices):
        yield (
            index.name,
            kind_of(index)[1],
            [names.get(number, "") for number in index.field_ids],
            index.uuid,
            index.dataset_version,
            None if index.fragment_ids is None else len(index.fragment_ids),
            index.created_at,
        )


def history_rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield the versions, newest first, with what made each."""
    return history_lines(snapshot)


def _field_names(snapshot: Snapshot) -> dict[int, str]:
    return {field.id: path for path, field in walk_paths(snapshot.manifest.schema)}
