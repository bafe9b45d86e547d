"""Fragments as pylance's users see them, plain, mutable dataclasses that turn into JSON; and base paths.

Inside Pennon a fragment is `pennon.table.fragment.Fragment`; these classes have pylance's names,
fields and JSON, so that what one library wrote for another process, the other can commit.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

from pennon import ops
from pennon.core.units import FieldId, FragmentId
from pennon.errors import ArgumentError
from pennon.io.paths import parse_uri
from pennon.table.fragment import (
    BasePath,
    DataFileRef,
    DeletionFileRef,
    DeletionKind,
    ExternalFile,
    Fragment,
    Sequence,
    WrittenColumns,
)

if TYPE_CHECKING:
    from pennon.scan.snapshot import Snapshot

_KINDS = {"array": DeletionKind.ARROW, "bitmap": DeletionKind.BITMAP}


class _Table(Protocol):
    """A table at one version, as far as a data file needs it: a `LanceDataset`."""

    @property
    def snapshot(self) -> Snapshot:
        """Return the version."""


class FilePath(str):
    """The path of a data file; calling it is pylance's old way to ask for it."""

    __slots__ = ()

    def __call__(self) -> str:
        """Return the path, with a warning."""
        warnings.warn("use DataFile.path without (): it is text", DeprecationWarning, stacklevel=2)
        return str(self)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Pickle as text."""
        return str, (str(self),)


@dataclass
class DataFile:
    """A data file of a fragment; ``path`` is relative to the table's ``data/``.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> file = ds.get_fragment(0).data_files()[0]
    >>> file.fields, file.column_indices
    ([0], [0])
    """

    path: str
    fields: list[int]
    column_indices: list[int] = field(default_factory=list)
    file_major_version: int = 0
    file_minor_version: int = 0
    file_size_bytes: int | None = None
    base_id: int | None = None
    written: WrittenColumns | None = field(default=None, init=False, repr=False, compare=False)
    """The columns that Pennon wrote into the file; it pickles, and is no part of the JSON."""

    def __post_init__(self) -> None:
        """Let the path be called."""
        self.path = FilePath(self.path)
        self.column_indices = self.column_indices or []

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what was pickled, by Pennon or by pylance, which calls the path ``_path``."""
        self.__dict__.update(state)
        if "_path" in self.__dict__:
            self.path = self.__dict__.pop("_path")
        self.path = FilePath(self.path)

    @property
    def field_ids(self) -> list[int]:
        """Return the ids of the fields, which are called ``fields`` as well."""
        return self.fields

    @classmethod
    def create(cls, dataset: _Table, path: str, *, base_id: int | None = None) -> Self:
        """Return a data file that lies in a table's ``data/``, with the table's fields that it has by name.

        The file may have some of the table's columns, for a `LanceOperation.DataReplacement`.  ``base_id``: the
        base path that it lies under, if that is not the table's folder.  Raises NotFoundError if it is
        not there, SchemaMismatchError if it does not fit the table.

        >>> from pennon.file import LanceFileWriter
        >>> from pennon.fragment import DataFile
        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2], "n": [3, 4]}), uri)
        >>> with LanceFileWriter(f"{uri}/data/new.lance", version=ds.data_storage_version) as writer:
        ...     writer.write_batch(pa.table({"n": [5, 6]}))
        >>> DataFile.create(ds, "new.lance").field_ids
        [1]
        """
        fragment = ops.adopt_file(dataset.snapshot, path, FragmentId(0), base_id)
        return cls.from_ref(fragment.files[0])

    @classmethod
    def from_ref(cls, ref: DataFileRef) -> Self:
        """Return the data file of a manifest."""
        made = cls(
            ref.path,
            list(ref.field_ids),
            list(ref.column_indices),
            ref.major,
            ref.minor,
            ref.size_bytes,
            ref.base_id,
        )
        made.written = ref.written
        return made

    def to_ref(self) -> DataFileRef:
        """Return what a manifest holds."""
        return DataFileRef(
            str(self.path),
            tuple(FieldId(number) for number in self.fields),
            tuple(self.column_indices),
            self.file_major_version,
            self.file_minor_version,
            self.file_size_bytes,
            self.base_id,
            written=self.written,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return pylance's JSON object."""
        return {
            "fields": list(self.fields),
            "column_indices": list(self.column_indices),
            "file_major_version": self.file_major_version,
            "file_minor_version": self.file_minor_version,
            "file_size_bytes": self.file_size_bytes,
            "base_id": self.base_id,
            "path": str(self.path),
        }


@dataclass
class DeletionFile:
    """A deletion file; ``file_type`` is ``array`` (an Arrow file) or ``bitmap`` (Roaring)."""

    read_version: int
    id: int
    file_type: str
    num_deleted_rows: int
    base_id: int | None = None

    def __post_init__(self) -> None:
        """Refuse a file type that does not exist."""
        if self.file_type not in _KINDS:
            message = f"deletion file type {self.file_type!r} is neither 'array' nor 'bitmap'"
            raise ArgumentError(message)

    @classmethod
    def from_ref(cls, ref: DeletionFileRef, num_deleted_rows: int) -> Self:
        """Return the deletion file of a manifest."""
        kind = next(name for name, kind in _KINDS.items() if kind is ref.kind)
        return cls(ref.read_version, ref.id, kind, num_deleted_rows, ref.base_id)

    def to_ref(self) -> DeletionFileRef:
        """Return what a manifest holds."""
        kind = _KINDS[self.file_type]
        return DeletionFileRef(
            kind, self.read_version, self.id, self.num_deleted_rows, self.base_id
        )

    def path(self, fragment_id: int, base_uri: str | None = None) -> str:
        """Return the path relative to the table's root, or below ``base_uri``."""
        relative = self.to_ref().store_path(FragmentId(fragment_id))
        return relative if base_uri is None else f"{base_uri}/{relative}"

    def asdict(self) -> dict[str, Any]:
        """Return pylance's JSON object."""
        return {
            "read_version": self.read_version,
            "id": self.id,
            "file_type": self.file_type,
            "num_deleted_rows": self.num_deleted_rows,
            "base_id": self.base_id,
        }

    def json(self) -> str:
        """Return `asdict` as text."""
        return json.dumps(self.asdict())

    @staticmethod
    def from_json(json: str) -> DeletionFile:
        """Parse what `json` returned."""
        return DeletionFile(**_parse_json(json))


@dataclass
class _SequenceMeta:
    """A serialized sequence, inline or in a file."""

    sequence: Sequence

    _INLINE = "Inline"
    _EXTERNAL = "External"

    def asdict(self) -> dict[str, Any]:
        """Return pylance's JSON object."""
        if isinstance(self.sequence, bytes):
            return {self._INLINE: list(self.sequence)}
        place = {
            "path": self.sequence.path,
            "offset": self.sequence.offset,
            "size": self.sequence.size_bytes,
        }
        return {self._EXTERNAL: place}

    def json(self) -> str:
        """Return `asdict` as text."""
        return json.dumps(self.asdict())

    @classmethod
    def from_dict(cls, dict: Mapping[str, Any]) -> Self:  # noqa: A002 - its name in pylance
        """Build from `asdict`'s object."""
        if cls._INLINE in dict:
            return cls(bytes(dict[cls._INLINE]))
        place = dict[cls._EXTERNAL]
        return cls(ExternalFile(place["path"], place["offset"], place["size"]))

    @classmethod
    def from_json(cls, json: str) -> Self:
        """Parse what `json` returned."""
        return cls.from_dict(_parse_json(json))


class RowIdMeta(_SequenceMeta):
    """The stable row ids of a fragment."""


class RowDatasetVersionMeta(_SequenceMeta):
    """The table version that each row of a fragment was made or last changed in."""

    _INLINE = "inline"
    _EXTERNAL = "external"


@dataclass
class FragmentMetadata:
    """A fragment: its data files (same rows, different columns) and its deleted rows.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> found = ds.get_fragment(0).metadata
    >>> found.id, found.num_rows, found.num_deletions
    (0, 3, 0)
    """

    id: int
    files: list[DataFile]
    physical_rows: int
    deletion_file: DeletionFile | None = None
    row_id_meta: RowIdMeta | None = None
    created_at_version_meta: RowDatasetVersionMeta | None = None
    last_updated_at_version_meta: RowDatasetVersionMeta | None = None
    overlays: list[Any] = field(default_factory=list)

    @property
    def num_deletions(self) -> int:
        """Return how many rows are deleted."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows

    @property
    def num_rows(self) -> int:
        """Return how many rows are alive."""
        return self.physical_rows - self.num_deletions

    def data_files(self) -> list[DataFile]:
        """Return ``files`` (pylance's old name)."""
        return self.files

    @classmethod
    def from_fragment(
        cls, fragment: Fragment, physical_rows: int | None = None, num_deleted_rows: int = 0
    ) -> Self:
        """Return the metadata of a fragment; the counts serve where the manifest has none."""
        deletion = fragment.deletion_file
        deleted = None
        if deletion is not None:
            known = deletion.num_deleted_rows
            count = num_deleted_rows if known is None else known
            deleted = DeletionFile.from_ref(deletion, count)
        rows = fragment.physical_rows if fragment.physical_rows is not None else physical_rows
        return cls(
            fragment.id,
            [DataFile.from_ref(ref) for ref in fragment.files],
            rows if rows is not None else 0,
            deleted,
            _meta(RowIdMeta, fragment.row_ids),
            _meta(RowDatasetVersionMeta, fragment.created_at_versions),
            _meta(RowDatasetVersionMeta, fragment.last_updated_at_versions),
        )

    def to_fragment(self) -> Fragment:
        """Return what a manifest holds."""
        return Fragment(
            FragmentId(self.id),
            tuple(file.to_ref() for file in self.files),
            self.physical_rows,
            None if self.deletion_file is None else self.deletion_file.to_ref(),
            _sequence(self.row_id_meta),
            _sequence(self.last_updated_at_version_meta),
            _sequence(self.created_at_version_meta),
        )

    def to_json(self) -> dict[str, Any]:
        """Return an object that ``json.dumps`` takes."""
        return {
            "id": self.id,
            "files": [file.to_dict() for file in self.files],
            "overlays": list(self.overlays),
            "physical_rows": self.physical_rows,
            "deletion_file": None if self.deletion_file is None else self.deletion_file.asdict(),
            "row_id_meta": _dict(self.row_id_meta),
            "created_at_version_meta": _dict(self.created_at_version_meta),
            "last_updated_at_version_meta": _dict(self.last_updated_at_version_meta),
        }

    @staticmethod
    def from_json(json_data: str) -> FragmentMetadata:
        """Parse the text of `to_json`'s object."""
        data = json.loads(json_data)
        deletion = data.get("deletion_file")
        created = data.get("created_at_version_meta")
        updated = data.get("last_updated_at_version_meta")
        row_ids = data.get("row_id_meta")
        return FragmentMetadata(
            data["id"],
            [DataFile(**file) for file in data["files"]],
            data["physical_rows"],
            None if deletion is None else DeletionFile(**deletion),
            None if row_ids is None else RowIdMeta.from_dict(row_ids),
            None if created is None else RowDatasetVersionMeta.from_dict(created),
            None if updated is None else RowDatasetVersionMeta.from_dict(updated),
            list(data.get("overlays") or ()),
        )


@dataclass(frozen=True)
class DatasetBasePath:
    """A base path: a place beside the table that it may name files in.

    ``is_dataset_root``: data files lie in its folder ``data/``, as in a table, rather than beside one
    another.  ``id`` is given when the place becomes one of a table's.

    >>> more = pennon.DatasetBasePath(uri + "-more", name="more")
    >>> rows = pa.table({"id": [1]})
    >>> ds = pennon.write_dataset(rows, uri, initial_bases=[more], target_bases=["more"])
    >>> ds.base_paths()[1].name, ds.count_rows()
    ('more', 1)
    """

    path: str
    name: str | None = None
    is_dataset_root: bool = False
    id: int | None = None

    @classmethod
    def from_base(cls, base: BasePath) -> Self:
        """Return a base path of a manifest."""
        return cls(base.path, base.name, base.is_dataset_root, base.id)

    def to_base(self) -> BasePath:
        """Return a base path to be added to a table; 0 stands for an id to be given.

        Paths of this machine are made absolute.
        """
        location = parse_uri(self.path)
        path = location.path if location.scheme == "file" else os.fspath(self.path)
        return BasePath(self.id or 0, path, self.name, self.is_dataset_root)


def _parse_json(text: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def _meta(kind: type[Any], sequence: Sequence | None) -> Any:
    return None if sequence is None else kind(sequence)


def _sequence(meta: _SequenceMeta | None) -> Sequence | None:
    return None if meta is None else meta.sequence


def _dict(meta: _SequenceMeta | None) -> dict[str, Any] | None:
    return None if meta is None else meta.asdict()
