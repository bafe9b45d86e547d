"""What a dataset says of its table without reading a row."""

from __future__ import annotations

from typing import Any

from pennon.compat.arrow_bases import ArrowDataset
from pennon.compat.not_implemented import Unfinished, missing
from pennon.scan.session import Session
from pennon.scan.snapshot import Snapshot
from pennon.schema.lance_schema import LanceSchema
from pennon.table.field_ids import highest_field_id
from pennon.table.storage_version import storage_version
from pennon.table.versions import latest_version


class DatasetFacts(ArrowDataset, metaclass=Unfinished):
    """The facts of one version of a table."""

    _uri: str
    _snapshot: Snapshot
    _storage_options: dict[str, str] | None

    @property
    def snapshot(self) -> Snapshot:
        """Return the version as Pennon's own functions take it."""
        return self._snapshot

    def session(self) -> Session:
        """Return what this dataset remembers of files; other datasets may share it."""
        return self._snapshot.session

    @property
    def uri(self) -> str:
        """Return the place, as it was given."""
        return self._uri

    @property
    def version(self) -> int:
        """Return the number of this version."""
        return self._snapshot.manifest.version

    @property
    def latest_version(self) -> int:
        """Return the number of the table's newest version, asked of the store now."""
        return latest_version(self._snapshot.store)

    @property
    def lance_schema(self) -> LanceSchema:
        """Return the schema with field ids."""
        return LanceSchema(self._snapshot.manifest.schema)

    def __getattr__(self, name: str) -> Any:
        """Say of an absent attribute whether pylance has it."""
        return missing("LanceDataset", name)

    @property
    def data_storage_version(self) -> str:
        """Return the file version that new data files get."""
        return str(storage_version(self._snapshot.manifest))

    @property
    def has_stable_row_ids(self) -> bool:
        """Tell whether rows keep their ids when they move."""
        return self._snapshot.manifest.has_stable_row_ids

    @property
    def max_field_id(self) -> int:
        """Return the highest field id in the schema and the data files, -1 if there is none."""
        return highest_field_id(self._snapshot.manifest)

    @property
    def has_index(self) -> bool:
        """Tell whether the version has indices."""
        return bool(self._snapshot.manifest.indices)

    @property
    def metadata(self) -> dict[str, str]:
        """Return the table's own metadata."""
        return dict(self._snapshot.manifest.table_metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Return the schema's metadata as text."""
        metadata = self._snapshot.manifest.schema.metadata
        return {key: bytes(value).decode(errors="replace") for key, value in metadata.items()}

    @property
    def initial_storage_options(self) -> dict[str, str] | None:
        """Return the storage options that the table was opened with."""
        return self._storage_options

    def latest_storage_options(self) -> dict[str, str] | None:
        """Return the storage options; they do not change."""
        return self._storage_options

    def config(self) -> dict[str, str]:
        """Return the table's config."""
        return dict(self._snapshot.manifest.config)
