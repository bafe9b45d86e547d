"""Operations of transactions: a value for each operation of transaction.proto.

Fragments, schemas and files are those of `pennon.table.fragment`.  Every operation keeps, in
``unknown``, the fields of its message that Pennon does not know, and in ``fields_wire`` the fields
of a schema as another writer wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum
from typing import TypeAlias

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import DatasetVersion, FieldId, FragmentId
from pennon.schema.field import Schema
from pennon.table.fragment import BasePath, DataFileRef, Fragment
from pennon.table.indices import Index
from pennon.table.indices import RewrittenIndex as RewrittenIndex


@dataclass(frozen=True, slots=True)
class Append:
    """New fragments at the end; their ids are given at commit."""

    fragments: tuple[Fragment, ...]
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Overwrite:
    """A new schema and new fragments in place of all there was, or a new table."""

    fragments: tuple[Fragment, ...]
    schema: Schema
    config_upserts: Mapping[str, str] = field(default_factory=dict)
    base_paths: tuple[BasePath, ...] = ()
    fields_wire: tuple[bytes, ...] | None = field(default=None, repr=False, compare=False)
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """Deleted rows: fragments with new deletion files, and fragments without live rows.

    ``predicate`` is what chose the rows, in SQL.
    """

    updated: tuple[Fragment, ...]
    deleted_ids: tuple[FragmentId, ...]
    predicate: str = ""
    unknown: bytes = field(default=b"", repr=False)


class UpdateMode(IntEnum):
    """The way in which rows were changed; the numbers are those of transaction.proto."""

    REWRITE_ROWS = 0
    REWRITE_COLUMNS = 1


@dataclass(frozen=True, slots=True)
class Update:
    """Rows changed: deleted from some fragments and new in others, or columns written anew.

    ``fields_modified`` are the fields that changed in ``updated``, so that no index on them is
    believed there.  ``fields_preserved`` are fields whose indices may go on to cover ``new``: their
    values are those of the rows that went.  ``updated_offsets`` says which rows of fragments had
    columns written anew, each a roaring bitmap; without it all rows of a fragment with new files count as
    updated.
    """

    removed_ids: tuple[FragmentId, ...]
    updated: tuple[Fragment, ...]
    new: tuple[Fragment, ...]
    fields_modified: tuple[FieldId, ...] = ()
    fields_preserved: tuple[FieldId, ...] = ()
    mode: UpdateMode | None = None
    updated_offsets: Mapping[FragmentId, bytes] = field(default_factory=dict)
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Merge:
    """A new schema, and all fragments with the files of its new columns.

    ``preserves_nullability`` promises other writers, pylance's, that rows written for the old schema
    fit the new one.
    """

    fragments: tuple[Fragment, ...]
    schema: Schema
    fields_wire: tuple[bytes, ...] | None = field(default=None, repr=False, compare=False)
    preserves_nullability: bool = False
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Project:
    """A new schema over the same files: columns dropped, renamed or put in another order."""

    schema: Schema
    fields_wire: tuple[bytes, ...] | None = field(default=None, repr=False, compare=False)
    preserves_nullability: bool = False
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """Fragments that follow one another, and those that hold their living rows now, in order."""

    old: tuple[Fragment, ...]
    new: tuple[Fragment, ...]
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class DeferredRemap:
    """Indices go on naming rows where they were; ``entry``, a fragment reuse index, says where they are.

    It takes the place of the entry with the uuid ``replaced``, None where there was none, and goes on from it.
    """

    entry: Index
    replaced: str | None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The same rows in other fragments (compaction); the new ones have reserved ids.

    ``deferred`` is no part of the transaction's message: it shows in the manifest alone.
    """

    groups: tuple[RewriteGroup, ...]
    rewritten_indices: tuple[RewrittenIndex, ...] = ()
    deferred: DeferredRemap | None = None
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class ReserveFragments:
    """The next ``count`` fragment ids are taken, for a Rewrite that follows."""

    count: int
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Restore:
    """An old version becomes the newest again."""

    version: DatasetVersion
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """Indices that come and go."""

    new: tuple[Index, ...] = ()
    removed: tuple[Index, ...] = ()
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class MapUpdate:
    """Changes of a map: None takes the key away.  ``replace``: nothing else stays in the map."""

    entries: Mapping[str, str | None]
    replace: bool = False


@dataclass(frozen=True, slots=True)
class UpdateConfig:
    """Changes of the table's config and of the metadata of table, schema and fields."""

    config: MapUpdate | None = None
    table_metadata: MapUpdate | None = None
    schema_metadata: MapUpdate | None = None
    fields: Mapping[FieldId, MapUpdate] = field(default_factory=dict)
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Replacement:
    """The file that takes the place of the one with the same fields in a fragment."""

    fragment_id: FragmentId
    file: DataFileRef
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class DataReplacement:
    """Other files for columns of fragments; rows stay."""

    replacements: tuple[Replacement, ...]
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Clone:
    """A table that begins as a version of another."""

    is_shallow: bool
    ref_name: str | None
    ref_version: DatasetVersion
    ref_path: str
    branch_name: str | None = None
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class UpdateBases:
    """Further roots for files."""

    new_bases: tuple[BasePath, ...]
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Other:
    """An operation that Pennon does not make, by its name in transaction.proto.

    ``name`` is empty where the operation is newer than Pennon.  ``message`` is the operation's own
    message, serialized.
    """

    name: str
    message: bytes = field(default=b"", repr=False)


Operation: TypeAlias = (
    Append
    | Overwrite
    | Delete
    | Update
    | Merge
    | Project
    | Rewrite
    | ReserveFragments
    | Restore
    | CreateIndex
    | UpdateConfig
    | DataReplacement
    | Clone
    | UpdateBases
    | Other
)

NAMES: Mapping[type, str] = {
    Append: "append",
    Overwrite: "overwrite",
    Delete: "delete",
    Update: "update",
    Merge: "merge",
    Project: "project",
    Rewrite: "rewrite",
    ReserveFragments: "reserve_fragments",
    Restore: "restore",
    CreateIndex: "create_index",
    UpdateConfig: "update_config",
    DataReplacement: "data_replacement",
    Clone: "clone",
    UpdateBases: "update_bases",
}
"""The operations' names in transaction.proto."""


def operation_name(operation: Operation) -> str:
    """Return the operation's name in transaction.proto, e.g. ``append``; empty if unknown."""
    return operation.name if isinstance(operation, Other) else NAMES[type(operation)]
