"""The values that a manifest file holds: one version of a table, whole.

A manifest names everything that belongs to one version: the schema, and the fragments in scan
order (`pennon.table.fragment`).  What belongs to one manifest *file* only, positions inside it, is not
part of these values: `pennon.table.manifest_wire` makes it anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import DatasetVersion, FieldId
from pennon.errors import ArgumentError, FormatError
from pennon.schema.field import Schema
from pennon.schema.version import FileVersion, check_not_newer
from pennon.table.fragment import BasePath, Fragment
from pennon.table.fragments import Fragments, fragment_ids, highest_fragment_id

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class WriterVersion:
    """The writer of a manifest; readers use it to work round the bugs of old writers."""

    library: str
    version: str
    prerelease: str | None = None
    build_metadata: str | None = None


@dataclass(frozen=True, slots=True)
class DataFormat:
    """The file format of new data files, e.g. ``lance`` and ``2.0``."""

    file_format: str
    version: str

    @property
    def file_version(self) -> FileVersion:
        """Return the version that is named.

        Raises UnsupportedError for one that is newer than all known, FormatError for a name that never was.
        """
        check_not_newer(self.version)
        try:
            return FileVersion.parse(self.version)
        except ArgumentError as error:
            message = f"the manifest names an unknown file version, {self.version!r}"
            raise FormatError(message) from error


@dataclass(frozen=True, slots=True)
class Summary:
    """One version of a table in a few numbers; rows are 0 where no trusted writer counted them."""

    version: DatasetVersion
    timestamp_ns: int
    fragments: int
    files: int
    size_bytes: int
    deletion_files: int
    physical_rows: int
    deleted_rows: int

    @property
    def timestamp(self) -> datetime:
        """Return the time of the commit, UTC, to the microsecond."""
        return _moment(self.timestamp_ns)


def _moment(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Manifest:
    """One version of a table.

    ``fields_wire`` holds the schema's fields as they were read, each a serialized message, and is
    written back as it is; set it to None together with a new ``schema``.  ``indices`` is the
    serialized IndexSection (empty: no index), ``transaction`` the serialized Transaction that made
    this version, where the manifest file holds it.  Neither is interpreted here.
    """

    schema: Schema
    version: DatasetVersion
    fragments: Sequence[Fragment] = ()
    fields_wire: tuple[bytes, ...] | None = field(default=None, repr=False, compare=False)
    timestamp_ns: int = 0
    writer: WriterVersion | None = None
    reader_flags: int = 0
    writer_flags: int = 0
    max_fragment_id: int | None = None
    transaction_file: str | None = None
    next_row_id: int = 0
    data_format: DataFormat | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    table_metadata: Mapping[str, str] = field(default_factory=dict)
    base_paths: tuple[BasePath, ...] = ()
    branch: str | None = None
    tag: str = ""
    indices: bytes = field(default=b"", repr=False)
    transaction: bytes | None = field(default=None, repr=False)
    dictionaries: Mapping[FieldId, pa.Array[Any]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """The values of dictionaries, which tables of version 0.1 have in each manifest."""
    unknown: bytes = field(default=b"", repr=False)

    @property
    def timestamp(self) -> datetime:
        """Return the time of the commit, UTC, to the microsecond."""
        return _moment(self.timestamp_ns)

    @property
    def summary(self) -> Summary:
        """Return the line of this version in the table's history."""
        fragments = Fragments.of(self.fragments)
        files, size_bytes = fragments.total_files()
        rows, deleted = fragments.total_rows()
        return Summary(
            version=self.version,
            timestamp_ns=self.timestamp_ns,
            fragments=len(fragments),
            files=files,
            size_bytes=size_bytes,
            deletion_files=fragments.deletion_files(),
            physical_rows=rows,
            deleted_rows=deleted,
        )

    @property
    def last_fragment_id(self) -> int:
        """Return the highest fragment id ever used as far as is known, or -1."""
        stated = -1 if self.max_fragment_id is None else self.max_fragment_id
        return max(stated, highest_fragment_id(self.fragments))

    @property
    def has_stable_row_ids(self) -> bool:
        """Tell whether rows keep their ids for ever (feature flag 2)."""
        return bool(self.reader_flags & 2)

    def fragment(self, fragment_id: int) -> Fragment | None:
        """Return the fragment of that id, or None."""
        ids = fragment_ids(self.fragments)
        return self.fragments[ids.index(fragment_id)] if fragment_id in ids else None
