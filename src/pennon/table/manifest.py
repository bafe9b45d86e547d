"""The values that a manifest file holds: one version of a table, whole.

A manifest names everything that belongs to one version: the schema, and the fragments in scan
order, each with its data files, its deletion file and, in tables with stable row ids, the ids of
its rows.

Protobuf fields that Pennon does not know are carried along as bytes (``unknown``), so that a table
goes through Pennon without losing what a newer writer put into it.  What belongs to one manifest
*file* only, positions inside it, is not part of these values: `pennon.table.manifest_wire` makes it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Many
from dataclasses import field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, TypeAlias

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import DatasetVersion, FieldId, FragmentId
from pennon.schema.field import Schema

TOMBSTONE = FieldId(-2)
"""Stands in ``DataFileRef.field_ids`` for a field whose column in this file is dead."""

NO_COLUMN = -1
"""Stands in ``DataFileRef.column_indices`` for a field without a column of its own."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _in_base(base_id: int | None, path: str) -> str:
    return path if base_id is None else f"@{base_id}/{path}"


@dataclass(frozen=True, slots=True)
class DataFileRef:
    """A data file of a fragment; ``path`` is relative to the folder ``data/``.

    ``field_ids[i]`` lies in the file's column ``column_indices[i]``; version 0.1 files have no
    column indices.  ``major`` and ``minor`` are the numbers as written: (0, 3) is version 2.0.
    ``size_bytes`` is None where the writer did not say.
    """

    path: str
    field_ids: tuple[FieldId, ...]
    column_indices: tuple[int, ...]
    major: int
    minor: int
    size_bytes: int | None = None
    base_id: int | None = None
    unknown: bytes = field(default=b"", repr=False)

    @property
    def store_path(self) -> str:
        """Return the path relative to the table's root, or to a base's (`pennon.table.base_paths`)."""
        return _in_base(self.base_id, f"data/{self.path}")


class DeletionKind(IntEnum):
    """How a deletion file stores its row offsets; the numbers are those of table.proto."""

    ARROW = 0
    BITMAP = 1


@dataclass(frozen=True, slots=True)
class DeletionFileRef:
    """A deletion file: which rows of its fragment are dead.

    ``num_deleted_rows`` is None where the writer did not say, or is known to say wrong.
    """

    kind: DeletionKind
    read_version: int
    id: int
    num_deleted_rows: int | None = None
    base_id: int | None = None
    unknown: bytes = field(default=b"", repr=False)

    def store_path(self, fragment: FragmentId) -> str:
        """Return the path relative to the root, or to a base's; it is made of numbers only."""
        suffix = "arrow" if self.kind is DeletionKind.ARROW else "bin"
        name = f"_deletions/{fragment}-{self.read_version}-{self.id}.{suffix}"
        return _in_base(self.base_id, name)


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """Bytes kept in a file of their own, at ``offset``; ``path`` is relative to the root."""

    path: str
    offset: int
    size_bytes: int


Sequence: TypeAlias = bytes | ExternalFile
"""A serialized sequence (row ids, row versions): inline, or in a file."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """Some rows of the table, in one or more data files of equal length.

    ``physical_rows`` counts deleted rows too.  It is None where the writer did not say, or is
    known to say wrong: the reader then asks the data file.
    """

    id: FragmentId
    files: tuple[DataFileRef, ...]
    physical_rows: int | None
    deletion_file: DeletionFileRef | None = None
    row_ids: Sequence | None = None
    last_updated_at_versions: Sequence | None = None
    created_at_versions: Sequence | None = None
    unknown: bytes = field(default=b"", repr=False)

    @property
    def num_deleted_rows(self) -> int | None:
        """Return how many rows are deleted, or None if only the deletion file knows."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows

    @property
    def num_rows(self) -> int | None:
        """Return how many rows live, or None if the manifest does not say."""
        deleted = self.num_deleted_rows
        if self.physical_rows is None or deleted is None:
            return None
        return self.physical_rows - deleted


@dataclass(frozen=True, slots=True)
class WriterVersion:
    """Who wrote a manifest; readers use it to work round the bugs of old writers."""

    library: str
    version: str
    prerelease: str | None = None
    build_metadata: str | None = None


@dataclass(frozen=True, slots=True)
class DataFormat:
    """The file format of new data files, e.g. ``lance`` and ``2.0``."""

    file_format: str
    version: str


@dataclass(frozen=True, slots=True)
class BasePath:
    """Another place where files of this table may lie."""

    id: int
    path: str
    name: str | None = None
    is_dataset_root: bool = False


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
    fragments: Many[Fragment] = ()
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
        from pennon.table.fragments import Fragments  # noqa: PLC0415 - fragments imports us

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
        return max([stated, *self._fragment_ids()])

    @property
    def has_stable_row_ids(self) -> bool:
        """Tell whether rows keep their ids for ever (feature flag 2)."""
        return bool(self.reader_flags & 2)

    def fragment(self, fragment_id: int) -> Fragment | None:
        """Return the fragment of that id, or None."""
        ids = self._fragment_ids()
        return self.fragments[ids.index(fragment_id)] if fragment_id in ids else None

    def _fragment_ids(self) -> list[int]:
        from pennon.table.fragments import fragment_ids  # noqa: PLC0415 - fragments imports us

        return fragment_ids(self.fragments)
